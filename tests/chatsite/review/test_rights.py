"""The admin for each of the sixteen combinations of the four permissions: all of its
addresses are requested, with a word planted in every text.
"""

import re
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain, combinations

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.contrib.lab.examples.models import Example
from chatsite.features.feedback.models import Feedback
from chatsite.features.review_queue.models import QueueItem
from chatsite.features.rules.models import Rule
from chatsite.review import redaction
from chatsite.review.rights import Rights, rights_of
from memory.models import Conversation, Message, ModelCall, Prompt, Summary
from tests.remembered import remembered

from ..conftest import CODENAMES
from .every_page import Place, links, make_conversation, places, plant_everywhere

WORD = "zebraquagga"
RIGHTS = ("metadata", "content", "export", "purge")
ALL = list(chain.from_iterable(combinations(RIGHTS, n) for n in range(5)))
WITHOUT_METADATA = [some for some in ALL if "metadata" not in some]
WITH_METADATA = [some for some in ALL if "metadata" in some]
# Where the word is to be seen by those who may read.
SHOWN = {
    *("memory_conversation_changelist", "memory_conversation_change"),
    *("memory_message_changelist", "memory_message_change"),
    *("memory_prompt_changelist", "memory_prompt_change"),
    *("memory_summary_change", "memory_modelcall_change", "chat_turn_change"),
    *("rules_rule_change", "feedback_feedback_changelist", "feedback_feedback_change"),
    *("review_queue_queueitem_changelist", "review_queue_queueitem_change"),
    *("examples_example_changelist", "examples_example_change", "review-example"),
}
COLUMNS = {
    Conversation: redaction.CONVERSATION,
    Message: redaction.MESSAGE,
    Summary: redaction.SUMMARY,
    ModelCall: redaction.CALL,
    Prompt: redaction.PROMPT,
    Rule: Rule.TEXTS,
    Feedback: Feedback.TEXTS,
    Example: Example.TEXTS,
    QueueItem: QueueItem.TEXTS,
}


@pytest.fixture
@remembered
def planted(alice):
    """Two conversations with the word everywhere."""
    rows = [make_conversation(alice, WORD) for _ in range(2)]
    plant_everywhere(rows[1], WORD, short=WORD)
    return rows


@pytest.fixture
def walked(planted, caplog):
    """All places, with the word behind each."""
    # Each refusal would be written with its traceback.
    caplog.set_level("CRITICAL", logger="django.request")
    return places(planted)


@pytest.fixture
def signed_in(django_user_model, walked):
    """signed_in(*rights) -> a client of a staff member with exactly those."""

    def sign_in(*rights, **values):
        name = f"walker {django_user_model.objects.count()}"
        values = {"username": name, "is_staff": True, **values}
        user = django_user_model.objects.create(**values)
        names = [CODENAMES[right] for right in rights]
        user.user_permissions.set(Permission.objects.filter(codename__in=names))
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@dataclass(frozen=True)
class Seen:
    """The response of one address."""

    place: Place
    url: str
    status: int
    has_word: bool
    loaded: tuple = field(default=(), repr=False)
    is_written_down: bool = False

    def is_as(self, rights):
        """Return if a review page lets in those who may see it, and no others."""
        may = set(self.place.needs) <= set(rights)
        # Others than a POST are refused before anybody asks who it is.
        return not self.place.is_own or self.status in ((200 if may else 403), 405)


def walk(client, walked, *, deep=False):
    """Each page, and with `deep` each view of itself that it leads to."""
    for place in walked:
        seen, text = look(client, place, place.url)
        yield seen
        for url in links(place, text) if deep and seen.status == 200 else ():
            yield look(client, place, url)[0]


def look(client, place, url):
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(url)
    text = answer.content.decode()
    asked = [query["sql"] for query in queries.captured_queries]
    is_written = any('INSERT INTO "desk_accessevent"' in sql for sql in asked)
    has_word = WORD in text
    found = (answer.status_code, has_word, loaded(asked), is_written)
    return Seen(place, url, *found), text


def loaded(asked):
    """The columns with words that were read, whatever became of them."""
    columns = [
        f'"{model._meta.db_table}"."{name}"'
        for model, names in COLUMNS.items()
        for name in names
    ]
    return tuple(
        column for column in columns if any(is_selected(sql, column) for sql in asked)
    )


def is_selected(sql, column):
    selected = sql.partition(" FROM ")[0]
    return column in selected and re.search(
        rf"(SELECT|,) {re.escape(column)}(,| AS |$)", selected
    )


def shorter(walked):
    """One place of each kind; of Django's own the ones that show rows."""
    places = {place.name: place for place in walked}.values()
    return [one for one in places if not one.name.endswith(("_add", "_history"))]


def lists(walked):
    """Return Django's own lists alone, and one list of each kind of the review app."""
    places = shorter(walked)
    return [one for one in places if one.is_own or one.name.endswith("_changelist")]


def of_the_desk(place):
    return place.is_own or place.name.startswith(("memory_", "chat_", "desk_"))


def test_pages_need_the_right_to_metadata(signed_in, walked):
    for rights in WITHOUT_METADATA:
        client = signed_in(*rights)
        has_most = rights is WITHOUT_METADATA[-1]
        for place in walked if has_most else lists(walked):
            answer = client.get(place.url)
            assert WORD not in answer.content.decode(), (rights, place)
            if of_the_desk(place):
                assert answer.status_code in (403, 405), (rights, place)
        index = client.get(reverse("admin:index")).content.decode()
        assert not re.search(r'href="/admin/(memory|chat|desk)/', index)


@pytest.mark.parametrize("may_read", [True, False])
def test_words_are_shown_to_those_alone_who_may_read(signed_in, walked, may_read):
    some = [rights for rights in WITH_METADATA if ("content" in rights) is may_read]
    for rights in some[:-1]:
        found = list(walk(signed_in(*rights), lists(walked)))
        assert [one for one in found if not one.is_as(rights)] == [], rights
        assert any(one.has_word for one in found) is may_read, rights
    found = list(walk(signed_in(*some[-1]), walked, deep=True))
    assert [one for one in found if not one.is_as(some[-1])] == []
    shown = {one.place.name for one in found if one.has_word}
    assert shown >= SHOWN if may_read else not shown
    # And every view of words is in the access log.
    assert [one for one in found if one.has_word and not one.is_written_down] == []


def test_lists_and_rows_are_not_even_loaded_with_their_words(signed_in, walked):
    """The own pages of the review app count and hash what they do not show."""
    tables = [place for place in shorter(walked) if not place.is_own]
    found = walk(signed_in("metadata", "export", "purge"), tables)
    assert [(one.url, one.loaded) for one in found if one.loaded] == []


def test_texts_are_hidden_where_the_site_promises_so(signed_in, walked, settings):
    settings.STAFF_CAN_READ_CHATS = False
    client = signed_in(is_superuser=True)
    for one in walk(client, shorter(walked)):
        assert one.is_as(("metadata", "export", "purge", "delete_user")), one
        assert not one.has_word, one
        # A file of numbers is written down, too.
        assert not one.is_written_down or one.place.name.endswith("_csv"), one


def test_a_post_does_nothing_without_the_right_to_it(signed_in, walked):
    count = Conversation.objects.count()
    for rights in ALL:
        client = signed_in(*rights)
        for place in shorter(walked):
            if {"metadata", *place.needs} - set(rights) and place.is_own:
                answer = client.post(place.url, {"post": "yes"})
                assert answer.status_code in (403, 405), (rights, place)
    assert Conversation.objects.count() == count


def test_tables_of_history_cannot_be_written_by_hand(signed_in, walked):
    client = signed_in(is_superuser=True)
    acts = ("_add", "_change", "_delete")
    tables = [one for one in walked if of_the_desk(one) and one.name.endswith(acts)]
    for place in tables:
        if not place.name.startswith("chat_allowance"):
            assert client.post(place.url, {"post": "yes"}).status_code == 403, place
    for model in COLUMNS:
        rows = [row.pk for row in model.objects.all()]
        delete = {"action": "delete_selected", "_selected_action": rows, "post": "yes"}
        client.post(list_of(model), delete)
        assert model.objects.count() == len(rows)


@pytest.mark.parametrize("is_known", [True, False])
def test_users_without_staff_status_are_sent_to_the_login(signed_in, walked, is_known):
    client = signed_in(*RIGHTS, is_staff=False) if is_known else Client()
    for place in walked:
        for answer in (client.get(place.url), client.post(place.url)):
            if answer.status_code != 405:
                assert "/login/" in answer.url, place


QUESTIONS = {
    Conversation: (
        *("title__startswith", "system_prompt__contains", "messages__text__contains"),
        *("policy__important__contains", "imported_from__isnull"),
    ),
    Message: ("text__contains", "tool_calls__contains", "conversation__title__gt"),
    Summary: ("text__contains", "flags__contains", "structured__has_key"),
    ModelCall: ("refs__contains", "message__text__contains"),
    Prompt: ("text__contains",),
}


def test_lookups_of_texts_are_refused(signed_in):
    client = signed_in(*RIGHTS)
    for model, questions in QUESTIONS.items():
        for question in questions:
            answer = client.get(list_of(model), {question: WORD})
            assert answer.status_code in (302, 400), question


def test_texts_are_not_searched(signed_in):
    client = signed_in("metadata")
    for model in COLUMNS.keys() - {Prompt}:
        assert client.get(list_of(model), {"q": WORD}).context["cl"].result_count == 0


def test_texts_are_not_completed(signed_in):
    question = {"app_label": "memory", "model_name": "message", "term": ""}
    url = reverse("admin:autocomplete")
    question["field_name"] = "conversation"
    found = signed_in(*RIGHTS).get(url, question)
    assert [one["text"][:13] for one in found.json()["results"]] == [
        "Conversation "
    ] * 2
    assert WORD not in found.content.decode()
    assert signed_in("content").get(url, question).status_code == 403


@pytest.mark.parametrize("model", COLUMNS)
def test_lists_are_not_sorted_by_texts(model):
    listed = admin.site.get_model_admin(model)
    for name in listed.list_display:
        shown = name if callable(name) else getattr(listed, name, None)
        order = getattr(shown, "admin_order_field", None) or name
        assert str(order).lstrip("-") not in listed.texts


def list_of(model):
    meta = model._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")


carry = import_module("chatsite.review.migrations.0002_carry_permissions").carry
OLD = ("memory.view_conversation", "memory.view_message", "memory.change_summary")


@pytest.fixture
def old(db):
    """Django's own permissions on the tables, from before the review pages."""

    def make(name):
        app, _, codename = name.partition(".")
        kind = ContentType.objects.get(app_label=app, model=codename.split("_")[1])
        values = {"content_type": kind, "codename": codename, "name": codename}
        return Permission.objects.create(**values)

    return {name: make(name) for name in (*OLD, "chat.view_turn")}


def give(django_user_model, *permissions):
    user = django_user_model.objects.create_user("carol", is_staff=True)
    user.user_permissions.set(permissions)
    carry(apps, None)
    return django_user_model.objects.get(pk=user.pk)


class TestUpgrade:
    @pytest.mark.parametrize(
        ("had", "has"),
        [
            ((), Rights()),
            (("memory.view_conversation",), Rights(metadata=True)),
            (("chat.view_turn",), Rights(metadata=True)),
            (("memory.change_summary",), Rights()),
            (("memory.view_message",), Rights(metadata=True, content=True)),
            ((*OLD, "chat.view_turn"), Rights(metadata=True, content=True)),
        ],
    )
    def test_users_who_could_see_still_see(self, django_user_model, old, had, has):
        user = give(django_user_model, *(old[name] for name in had))
        assert rights_of(user) == has

    def test_groups_are_carried_too(self, django_user_model, old):
        group = Group.objects.create(name="auditors")
        group.permissions.add(old["memory.view_message"])
        user = give(django_user_model)
        user.groups.add(group)
        fresh = django_user_model.objects.get(pk=user.pk)
        assert rights_of(fresh) == Rights(metadata=True, content=True)

    def test_obsolete_permissions_are_removed(self, django_user_model, old):
        give(django_user_model)
        rows = Permission.objects.filter(content_type__app_label="memory")
        assert set(rows.values_list("codename", flat=True)) == {
            *("view_metadata", "read_content"),
            *("export_conversations", "purge_conversations"),
        }

    def test_a_second_time_changes_nothing(self, django_user_model, old):
        user = give(django_user_model, old["memory.view_message"])
        carry(apps, None)
        assert set(user.user_permissions.values_list("codename", flat=True)) == {
            *("view_metadata", "read_content"),
        }
