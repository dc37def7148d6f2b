"""The admin's lists and pages: readable, read-only, escaped, and without N+1."""

import re
import uuid
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.contrib.admin import site
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chatsite.review.admin.turns import TurnAdmin
from chatsite.review.models import Review, Tombstone
from chatsite.review.readonly import ShortPaginator
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Turn
from memory import transcript
from memory.models import Conversation, Message, ModelCall, Prompt, Summary
from tests.memory.scenes import plant, say, summarise, talk

MODELS = (Conversation, Message, Summary, ModelCall, Prompt)


def name_of(model):
    return model._meta.model_name


@pytest.mark.parametrize("model", MODELS)
def test_lists_and_pages_are_shown(model, page, versions):
    row = model.objects.first()
    assert "Windowpane" in page(f"{name_of(model)}_changelist")
    text = page(f"{name_of(model)}_change", row.pk)
    assert 'name="_save"' not in text
    assert "deletelink" not in text
    # It would lead to Django's list of changes, which has none.
    assert "historylink" not in text


@pytest.mark.parametrize("model", MODELS)
def test_pages_need_no_inline_script_or_style(model, page, versions):
    """The site's CSP would block them."""
    inline = re.compile(r"<script(?![^>]* src=)|<style|<[^>]+ (style|on[a-z]+)=", re.I)
    name = name_of(model)
    for text in (
        page(f"{name}_changelist"),
        page(f"{name}_change", model.objects.last().pk),
    ):
        assert inline.findall(text) == []


@pytest.mark.parametrize("model", MODELS)
def test_list_takes_as_many_queries_for_many_rows_as_for_few(
    model, client, staff_with, alice, bob, versions
):
    client.force_login(staff_with("metadata"))
    url = reverse(f"admin:memory_{name_of(model)}_changelist")
    client.get(url)
    with CaptureQueriesContext(connection) as few:
        client.get(url)
    for owner in (alice, bob, alice):
        more = transcript.create_conversation(owner, system_prompt=f"Prompt of {owner}")
        talk(more, 4)
        summarise(more, 1, 4)
    with CaptureQueriesContext(connection) as many:
        client.get(url)
    assert len(many) == len(few) <= 8


def test_paginator_does_not_count_a_whole_table(page, conversation, monkeypatch):
    monkeypatch.setattr(ShortPaginator, "most", 5)
    text = page("message_changelist")
    assert "more than 5 messages" in text
    assert "7 messages" not in text


def test_list_shows_the_beginning_of_a_long_text(page, conversation):
    say(conversation, "word " * 5000)
    text = page("message_changelist")
    assert len(text) < 40_000
    assert "word word …" in text


class TestConversations:
    def test_page_counts_the_rows_of_a_conversation(self, page, conversation, versions):
        text = page("conversation_change", conversation.pk)
        assert f"?conversation__id__exact={conversation.pk}" in text
        assert ">8</a>" in text
        assert ">2</a>" in text

    @pytest.mark.parametrize(
        ("failures", "state", "words"),
        [
            (0, "working", "working"),
            (2, "failing", "failed 2 times, will try again"),
            (3, "stopped", "stopped after 3 failures"),
        ],
    )
    def test_list_finds_conversations_whose_compaction_fails(
        self, page, conversation, failures, state, words
    ):
        plant(conversation, compaction_failures=failures)
        assert words in page("conversation_changelist", compaction=state)
        others = {"working", "failing", "stopped"} - {state}
        for other in others:
            assert "Audited" not in page("conversation_changelist", compaction=other)

    def test_list_links_titles_to_pages_and_pages_to_logs(self, page, conversation):
        here = f"/admin/memory/conversation/{conversation.pk}"
        title = rf'<a href="{here}/change/[^"]*">Audited</a>'
        assert re.search(title, page("conversation_changelist"))
        log = f'href="{here}/timeline/?tab=log"'
        assert log in page("conversation_change", conversation.pk)

    def test_list_finds_conversations_by_id_and_owner_only(self, page, conversation):
        for query in (str(conversation.uuid), conversation.uuid.hex, "ali"):
            assert "Audited" in page("conversation_changelist", q=query)
        for query in ("Audited", "Text", "'; --", "lice"):
            assert ">Audited<" not in page("conversation_changelist", q=query)

    def test_filters_say_yes_and_no(self, page, conversation):
        text = page("conversation_changelist")
        assert re.search(r"archived.*?>All<.*?>No<.*?>Yes<", text, re.DOTALL)
        assert "Not empty" not in text
        Conversation.objects.update(archived_at=timezone.now())
        for value, is_there in (("0", True), ("1", False)):
            found = page("conversation_changelist", archived_at__isempty=value)
            assert (">Audited<" in found) is is_there

    @pytest.mark.parametrize("value", ["\0", "x" * 300, "-1", "\ud800", ""])
    def test_list_survives_odd_queries(self, reviewer, conversation, value):
        url = reverse("admin:memory_conversation_changelist")
        for name in ("compaction", "q", "p", "o", "archived_at__isempty", "owner__id"):
            query = urlencode({name: value}, errors="surrogatepass")
            response = reviewer.get(f"{url}?{query}")
            assert response.status_code in (200, 302, 400), name


class TestCalls:
    def test_page_shows_what_the_model_saw(self, page, conversation):
        call = say(conversation, "What was my first text?")
        text = page("modelcall_change", call.pk)
        assert "the hash matches what was sent" in text
        assert "What was my first text?" in text

    def test_page_reports_a_hash_that_does_not_match(self, page, conversation):
        call = say(conversation, "What was my first text?")
        plant(conversation.messages.get(seq=1), text="changed")
        assert "the hash does not match" in page("modelcall_change", call.pk)

    @pytest.mark.parametrize("refs", [{}, [], {"system": 5}])
    def test_page_survives_broken_references(self, page, conversation, refs):
        call = say(conversation, "Hi")
        plant(call, refs=refs)
        assert "The references are broken" in page("modelcall_change", call.pk)

    @pytest.mark.parametrize(
        ("reported", "drift", "cached", "cost"),
        [
            (None, "–", "–", "$0.0003"),
            (150, "-33 %", "40%", "$0.0004"),
        ],
    )
    def test_list_shows_tokens_and_cost(
        self, client, staff_with, conversation, settings, reported, drift, cached, cost
    ):
        settings.PRICE_INPUT, settings.PRICE_OUTPUT = 2.0, 10.0
        call = say(conversation, "Hi")
        plant(call, tokens_estimated=100, tokens_input=reported, tokens_cached=60)
        plant(call, tokens_output=20 if reported else 10, model="gpt-9")
        client.force_login(staff_with("metadata"))
        url = reverse("admin:memory_modelcall_changelist")
        text = client.get(url, {"q": str(conversation.uuid)}).content.decode()
        for value in (drift, cached, cost):
            assert f">{value}</td>" in text

    def test_list_finds_calls_by_model(self, page, conversation):
        plant(say(conversation, "Hi"), model="gpt-9")
        assert "gpt-9" in page("modelcall_changelist", q="gpt-9")
        assert (
            "gpt-9" not in page("modelcall_changelist", q="gpt").partition("<thead>")[2]
        )

    def test_an_error_that_is_no_code_is_hidden_from_who_may_not_read(
        self, client, staff_with, conversation
    ):
        client.force_login(staff_with("metadata"))
        call = say(conversation, "Hi")
        url = reverse("admin:memory_modelcall_change", args=[call.pk])
        for error, is_shown in (
            ("timeout", True),
            ("EmptySummary", True),
            ("Oh", False),
        ):
            plant(call, error=error)
            text = client.get(url).content.decode()
            assert (f">{error}<" in text) is is_shown


TURNS = "admin:chat_turn_changelist"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def staff_client(client, staff):
    client.force_login(staff)
    return client


def failed_turn(owner, text="Reply"):
    conversation = transcript.create_conversation(owner)
    commands.submit_message(conversation, text="Hello", client_id="a")
    claim = lifecycle.claim(conversation.pk)
    failed = lifecycle.TurnResult(Turn.State.FAILED, text, error="timeout")
    return lifecycle.finish(claim, failed)


def make_turns(owner, *states):
    conversation = transcript.create_conversation(owner)
    for number, state in enumerate(states):
        message, _ = transcript.append_user_message(
            conversation, text="Hi", client_id=f"{number}"
        )
        Turn.objects.create(
            conversation=conversation, user_message=message, state=state, reply_seq=9
        )
    return conversation


class TestTurns:
    def test_a_copy_has_no_negative_times(self):
        now = timezone.now()
        then = now - timedelta(days=365)
        turn = Turn(created_at=now, started_at=then, finished_at=then)
        admin = TurnAdmin(Turn, site)
        assert (admin.queued_for(turn), admin.total_time(turn)) == ("–", "–")

    def test_page_shows_the_steps_of_a_reply(self, staff_client, alice):
        turn = failed_turn(alice, SCRIPT)
        text = staff_client.get(
            reverse("admin:chat_turn_change", args=[turn.pk])
        ).content
        assert b"The model took too long to answer." in text
        assert b"&lt;script&gt;" in text
        assert b"<script>alert" not in text

    def test_list_filters_by_state(self, staff_client, alice):
        failed_turn(alice)
        assert (
            b"timeout"
            in staff_client.get(reverse(TURNS), {"state__exact": "failed"}).content
        )
        assert (
            b"timeout"
            not in staff_client.get(reverse(TURNS), {"state__exact": "done"}).content
        )

    def test_pages_of_turns_cannot_change_anything(self, staff_client, alice):
        turn = failed_turn(alice)
        for act, args in (("add", []), ("change", [turn.pk]), ("delete", [turn.pk])):
            url = reverse(f"admin:chat_turn_{act}", args=args)
            assert staff_client.post(url, {"post": "yes"}).status_code == 403

    def test_list_takes_as_many_queries_for_many_rows_as_for_few(
        self, staff_client, alice, bob
    ):
        failed_turn(alice)
        staff_client.get(reverse(TURNS))
        with CaptureQueriesContext(connection) as few:
            staff_client.get(reverse(TURNS))
        for owner in (alice, bob, alice):
            failed_turn(owner)
        with CaptureQueriesContext(connection) as many:
            staff_client.get(reverse(TURNS))
        assert len(many) == len(few)

    def test_list_has_failed_turns_first(self, staff_client, alice):
        make_turns(
            alice, "failed", "done", "truncated", "stopped", "interrupted", "queued"
        )
        rows = staff_client.get(reverse(TURNS)).context["cl"].result_list
        assert [row.state for row in rows] == [
            *("interrupted", "truncated", "failed"),
            *("queued", "stopped", "done"),
        ]

    def test_an_index_has_that_order(self, staff_client, alice):
        """The index saves sorting a million turns for one page of them."""
        make_turns(alice, "failed", "done")
        rows = (
            staff_client.get(reverse(TURNS))
            .context["cl"]
            .queryset.order_by(*TurnAdmin.ordering)
        )
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET LOCAL enable_seqscan = off")
                cursor.execute("SET LOCAL enable_sort = off")
            assert (
                "turn_failing_first"
                in rows.only("pk").select_related(None)[:50].explain()
            )

    def test_page_shows_the_duration_of_each_part(self, staff_client, alice):
        turn = failed_turn(alice)
        start = turn.created_at
        plant(turn, started_at=start + timedelta(seconds=1.5))
        plant(turn, finished_at=start + timedelta(seconds=9.04))
        call = say(turn.conversation, "Hi")
        plant(call, first_token_ms=2340)
        plant(turn, call=call)
        text = staff_client.get(reverse(TURNS)).content.decode()
        for seconds in ("1.5", "2.3", "9.0"):
            assert f">{seconds}\u00a0s<" in text
        assert reverse("admin:memory_modelcall_change", args=[call.pk]) in text


HOSTILE = "<script>alert(1)</script> {{ 7|add:7 }}"


@pytest.fixture
def rows(conversation, staff):
    review = Review.objects.create(
        conversation=conversation, user=staff, username="staff", version=2,
        last_seq=8, memory_version=0, note=HOSTILE,
    )  # fmt: skip
    stone = Tombstone.objects.create(
        conversation=uuid.UUID(int=7), messages=8, summaries=1, model_calls=5, turns=4,
        sha256="a" * 64, begun_at=timezone.now(), username="eraser", reason=HOSTILE,
    )  # fmt: skip
    return {"review": review, "tombstone": stone}


def get(client, name, act, *args, **params):
    url = reverse(f"admin:desk_{name}_{act}", args=args)
    response = client.get(url, params)
    assert response.status_code == 200
    return response.content.decode()


class TestReviewsAndTombstones:
    def test_hostile_texts_are_shown_as_text(self, reviewer, rows):
        for name, row in rows.items():
            for text in (
                get(reviewer, name, "changelist"),
                get(reviewer, name, "change", row.pk),
            ):
                assert "<script>alert" not in text
                assert 'name="_save"' not in text
            assert "&lt;script&gt;alert(1)" in text

    def test_notes_are_for_those_who_may_read(self, client, staff_with, rows):
        client.force_login(staff_with("metadata"))
        for act, args in (("changelist", []), ("change", [rows["review"].pk])):
            text = get(client, "review", act, *args)
            assert "#8, v2" in text
            assert "alert(1)" not in text

    def test_tombstones_are_found_by_id_and_by_who_erased(self, reviewer, rows):
        for query in (str(uuid.UUID(int=7)), "eraser"):
            assert "aaaaaaaaaaaa…" in get(reviewer, "tombstone", "changelist", q=query)
        for query in ("eras", HOSTILE, str(uuid.UUID(int=8))):
            assert "aaaaaaaaaaaa…" not in get(
                reviewer, "tombstone", "changelist", q=query
            )

    def test_records_cannot_be_added_changed_or_deleted(self, client, staff, rows):
        client.force_login(staff)
        for name, row in rows.items():
            for act, args in (("add", []), ("change", [row.pk]), ("delete", [row.pk])):
                url = reverse(f"admin:desk_{name}_{act}", args=args)
                assert client.post(url, {"post": "yes", "note": "x"}).status_code == 403
            url = reverse(f"admin:desk_{name}_changelist")
            fields = {"action": "delete_selected", "_selected_action": [row.pk]}
            client.post(url, {**fields, "post": "yes"})
            assert type(row).objects.filter(pk=row.pk).exists()
