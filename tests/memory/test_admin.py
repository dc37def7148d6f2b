"""The admin's pages of the memory: readable, read-only, escaped, and without N+1."""

import re
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memory import transcript
from memory.models import Conversation, Message, ModelCall, Prompt, Summary
from tests.memory.scenes import plant, say, summarise, talk

MODELS = (Conversation, Message, Summary, ModelCall, Prompt)
HOSTILE = "<script>alert(1)</script> {{ 7|add:7 }} {% debug %} <img src=x onerror=y>"


@pytest.fixture
def auditor(django_user_model):
    """Staff who may view everything of the memory, and nothing else."""
    user = django_user_model.objects.create_user("auditor", is_staff=True)
    views = Permission.objects.filter(
        content_type__app_label="memory", codename__startswith="view_"
    )
    user.user_permissions.set(views)
    return user


@pytest.fixture
def page(client, auditor):
    """Fetches a page of the admin as the auditor and gives back its text."""
    client.force_login(auditor)

    def get(name, *args, **params):
        response = client.get(reverse(f"admin:memory_{name}", args=args), params)
        assert response.status_code == 200
        return response.content.decode()

    return get


@pytest.fixture
def conversation(alice):
    conversation = transcript.create(alice, title="Audited")
    talk(conversation, 4)
    return conversation


@pytest.fixture
def versions(conversation):
    """v1 over the first two turns, v2 extending it over two more."""
    first = summarise(conversation, 1, 4, text="The first text.")
    second = summarise(conversation, 1, 8, replaces=[first], text="The second text.")
    return first, second


def name_of(model):
    return model._meta.model_name


@pytest.mark.parametrize("model", MODELS)
def test_it_shows_lists_and_pages(model, page, versions):
    row = model.objects.first()
    assert "Windowpane" in page(f"{name_of(model)}_changelist")
    text = page(f"{name_of(model)}_change", row.pk)
    assert 'name="_save"' not in text
    assert "deletelink" not in text


@pytest.mark.parametrize("model", MODELS)
def test_it_needs_no_inline_script_or_style(model, page, versions):
    """The site's CSP would block them."""
    inline = re.compile(r"<script(?![^>]* src=)|<style|<[^>]+ (style|on[a-z]+)=", re.I)
    name = name_of(model)
    for text in (
        page(f"{name}_changelist"),
        page(f"{name}_change", model.objects.last().pk),
    ):
        assert inline.findall(text) == []


@pytest.mark.parametrize("model", MODELS)
def test_it_lets_nobody_change_anything(model, client, staff, versions):
    client.force_login(staff)
    row, count = model.objects.first(), model.objects.count()
    for act, args in (("add", []), ("change", [row.pk]), ("delete", [row.pk])):
        url = reverse(f"admin:memory_{name_of(model)}_{act}", args=args)
        assert client.post(url, {"post": "yes", "text": "x"}).status_code == 403
    action = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    client.post(reverse(f"admin:memory_{name_of(model)}_changelist"), action)
    assert model.objects.count() == count


@pytest.mark.parametrize("model", MODELS)
def test_it_shows_nothing_without_permission(
    model, client, django_user_model, versions
):
    client.force_login(django_user_model.objects.create_user("new", is_staff=True))
    for act, args in (("changelist", []), ("change", [model.objects.first().pk])):
        url = reverse(f"admin:memory_{name_of(model)}_{act}", args=args)
        assert client.get(url).status_code == 403


def test_it_sends_people_who_are_no_staff_to_the_login(client, alice, versions):
    client.force_login(alice)
    response = client.get(reverse("admin:memory_summary_changelist"))
    assert response.status_code == 302
    assert "/login/" in response["Location"]


@pytest.mark.parametrize("model", MODELS)
def test_it_asks_as_much_for_many_rows_as_for_few(
    model, client, auditor, alice, bob, versions
):
    client.force_login(auditor)
    url = reverse(f"admin:memory_{name_of(model)}_changelist")
    client.get(url)
    with CaptureQueriesContext(
        connection,
    ) as few:
        client.get(url)
    for owner in (alice, bob, alice):
        more = transcript.create(owner, system_prompt=f"Prompt of {owner}")
        talk(more, 4)
        summarise(more, 1, 4)
    with CaptureQueriesContext(connection) as many:
        client.get(url)
    assert len(many) == len(few) <= 8


@pytest.mark.parametrize("model", [Message, Summary])
def test_it_does_not_load_whole_texts_for_a_list(model, page, versions):
    row = admin.site.get_model_admin(model).get_queryset(None).first()
    assert "text" in row.get_deferred_fields()


def test_it_shows_the_beginning_of_a_long_text(page, conversation):
    say(conversation, "word " * 5000)
    text = page("message_changelist")
    assert len(text) < 40_000
    assert "word word …" in text


@pytest.mark.parametrize("model", MODELS)
def test_it_shows_hostile_text_as_text(model, page, alice):
    conversation = transcript.create(alice, title=HOSTILE, system_prompt=HOSTILE)
    call = say(conversation, HOSTILE)
    plant(call, error=HOSTILE, refs={**call.refs, HOSTILE: HOSTILE}, model=HOSTILE)
    summary = summarise(conversation, 1, 2, text=HOSTILE, structured={"a": HOSTILE})
    plant(summary, error=HOSTILE[:100], trigger={"kind": HOSTILE, "limit": HOSTILE})
    rows = model.objects.all()
    pages = [page(f"{name_of(model)}_change", row.pk) for row in rows]
    for text in (page(f"{name_of(model)}_changelist"), *pages):
        assert "<script>alert" not in text
        assert "<img src=x" not in text
    assert any("&lt;script&gt;alert" in text for text in pages)
    assert any("{{ 7|add:7 }}" in text for text in pages)


class TestConversation:
    def test_it_counts_what_a_conversation_has(self, page, conversation, versions):
        text = page("conversation_change", conversation.pk)
        assert f"?conversation__id__exact={conversation.pk}" in text
        assert "8 messages" in text
        assert "2 summaries" in text

    @pytest.mark.parametrize(
        ("failures", "state", "words"),
        [
            (0, "working", "working"),
            (2, "failing", "failed 2 times, will try again"),
            (3, "stopped", "stopped after 3 failures"),
        ],
    )
    def test_it_finds_where_folding_fails(
        self, page, conversation, failures, state, words
    ):
        plant(conversation, fold_failures=failures)
        assert words in page("conversation_changelist", folding=state)
        others = {"working", "failing", "stopped"} - {state}
        for other in others:
            assert "Audited" not in page("conversation_changelist", folding=other)

    def test_it_is_found_by_its_id_and_owner_only(self, page, conversation):
        for query in (str(conversation.uuid), conversation.uuid.hex, "ali"):
            assert "Audited" in page("conversation_changelist", q=query)
        for query in ("Audited", "Text", "'; --"):
            assert ">Audited<" not in page("conversation_changelist", q=query)

    @pytest.mark.parametrize("value", ["\0", "x" * 300, "-1", "\ud800", ""])
    def test_it_survives_odd_questions(self, client, auditor, conversation, value):
        client.force_login(auditor)
        url = reverse("admin:memory_conversation_changelist")
        for name in ("folding", "q", "p", "o", "archived_at__isempty", "owner__id"):
            query = urlencode({name: value}, errors="surrogatepass")
            response = client.get(f"{url}?{query}")
            assert response.status_code in (200, 302, 400), name


class TestSummary:
    def test_it_shows_text_and_previous_version(self, page, versions):
        text = page("summary_change", versions[1].pk)
        assert '<pre class="wrap">The second text.</pre>' in text
        assert '<pre class="wrap">The first text.</pre>' in text
        assert "was folded into this one" in text

    def test_it_shows_the_version_before_where_nothing_was_replaced(
        self, page, conversation
    ):
        summarise(conversation, 1, 4, text="The first text.")
        second = summarise(conversation, 5, 8)
        text = page("summary_change", second.pk)
        assert "came before and stands beside this one" in text
        assert "The first text." in text

    def test_it_says_when_there_was_no_version_before(self, page, versions):
        text = page("summary_change", versions[0].pk)
        assert "This is the first version" in text
        assert "Folded into" in text

    def test_it_lists_the_messages_it_was_the_first_to_fold(self, page, versions):
        text = page("summary_change", versions[1].pk)
        assert "Messages it folded (4)" in text
        assert ">#5</a>" in text
        assert ">#4</a>" not in text
        everything = page("summary_change", versions[1].pk, all=1)
        assert "Messages in its range (8)" in everything
        assert ">#1</a>" in everything

    def test_it_lists_a_hundred_messages_a_page(self, page, alice):
        conversation = transcript.create(alice)
        Message.objects.bulk_create(
            Message(
                conversation=conversation, seq=n, role="user", text=f"No {n}", tokens=1
            )
            for n in range(1, 251)
        )
        summary = summarise(conversation, 1, 250)
        for number, first, last in ((1, 1, 100), (2, 101, 200), (3, 201, 250)):
            text = page("summary_change", summary.pk, page=number)
            assert text.count("<td>user") == last - first + 1
            assert f">#{first}</a>" in text
            assert f">#{last}</a>" in text
        assert page("summary_change", summary.pk, page="x").count("<td>user") == 100

    def test_it_asks_as_much_for_many_messages_as_for_few(self, page, conversation):
        small = summarise(conversation, 1, 2)
        talk(conversation, 20)
        large = summarise(conversation, 3, 48)
        counts = []
        for summary in (small, large):
            page("summary_change", summary.pk)
            with CaptureQueriesContext(connection) as queries:
                page("summary_change", summary.pk)
            counts.append(len(queries))
        assert counts[0] == counts[1] < 20

    def test_it_shows_a_failure_without_a_text(self, page, conversation):
        failed = summarise(
            conversation, 1, 4, status="failed", text="", error="timeout"
        )
        text = page("summary_change", failed.pk)
        assert "timeout" in text
        assert "timeout" in page("summary_changelist", status__exact="failed")

    def test_it_filters_by_trigger(self, page, versions):
        assert "4\u00a0→\u00a02" not in page("summary_changelist", trigger="tokens")
        plant(versions[0], trigger={"kind": "tokens"}, tokens_before=4, tokens_after=2)
        assert "4\u00a0→\u00a02" in page("summary_changelist", trigger="tokens")
        assert "4\u00a0→\u00a02" not in page("summary_changelist", trigger="messages")

    def test_it_hides_messages_and_calls_from_who_may_not_view_them(
        self, page, auditor, versions
    ):
        kept = Permission.objects.filter(codename="view_summary")
        auditor.user_permissions.set(kept)
        text = page("summary_change", versions[1].pk)
        assert "The second text." in text
        assert "Messages it folded" not in text
        assert "Model calls" not in text


class TestModelCall:
    def test_it_shows_what_the_model_saw(self, page, conversation):
        call = say(conversation, "What was my first text?")
        text = page("modelcall_change", call.pk)
        assert "the hash matches what was sent" in text
        assert "What was my first text?" in text

    def test_it_says_when_the_hash_does_not_match(self, page, conversation):
        call = say(conversation, "What was my first text?")
        conversation.messages.filter(seq=1).update(text="changed")
        assert "the hash does not match" in page("modelcall_change", call.pk)

    @pytest.mark.parametrize("refs", [{}, [], {"system": 5}])
    def test_it_survives_broken_references(self, page, conversation, refs):
        call = say(conversation, "Hi")
        plant(call, refs=refs)
        assert "The references are broken" in page("modelcall_change", call.pk)

    def test_it_hides_what_was_sent_from_who_may_not_view_messages(
        self, page, auditor, conversation
    ):
        auditor.user_permissions.set(
            Permission.objects.filter(codename="view_modelcall")
        )
        call = say(conversation, "What was my first text?")
        assert "What was my first text?" not in page("modelcall_change", call.pk)


@pytest.mark.parametrize("model", MODELS)
def test_nobody_reads_where_the_site_promises_so(
    model, client, staff, versions, settings
):
    settings.STAFF_CAN_READ_CHATS = False
    client.force_login(staff)
    row = model.objects.first()
    for name, args in (("changelist", []), ("change", [row.pk]), ("history", [row.pk])):
        address = reverse(f"admin:memory_{name_of(model)}_{name}", args=args)
        assert client.get(address).status_code == 403
    assert b"Summaries" not in client.get(reverse("admin:index")).content
