"""Summaries in the admin: found by what is doubtful about them, page by page."""

import re

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.review.readonly import ShortPaginator
from memory import actions, transcript
from memory.compaction import lease
from memory.models import Summary
from tests.databases import forget_statistics
from tests.memory.scenes import add_turns, compact, plant, summarise, talk

LIST = "summary_changelist"


def rows_of(text):
    """The versions that a list shows, in its order."""
    cells = text.partition("<tbody>")[2].split('field-version_link">')[1:]
    return [cell.partition("</a>")[0].rpartition(">")[2] for cell in cells]


@pytest.fixture
def varied(conversation, django_user_model):
    """Four versions that differ in everything a filter asks for."""
    editor = django_user_model.objects.create_user("editor")
    summarise(conversation, 1, 2, flags={"unsupported": ["Kafka", "9"]}, preset="guide")
    summarise(conversation, 3, 4, status="failed", text="", error="timeout")
    first = Summary.objects.get(version=1)
    merged = {"level": 1, "generation": 2, "author": editor}
    summarise(conversation, 1, 3, replaces=[first], **merged)
    summarise(conversation, 6, 8, trigger={"kind": "tokens", "value": 9, "limit": 8})
    return conversation


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "v4 v3 v2 v1"),
        ({"o": "12"}, "v1 v2 v3 v4"),
        ({"trigger": "tokens"}, "v4"),
        ({"trigger": "messages"}, "v3 v2 v1"),
        ({"status__exact": "failed"}, "v2"),
        ({"flag": "unsupported"}, "v1"),
        ({"flag": "rewritten"}, "v3"),
        ({"flag": "gap"}, "v4"),
        ({"level": "1"}, "v3"),
        ({"level": "more"}, ""),
        ({"preset": "guide"}, "v1"),
        ({"preset": "unknown", "level": "0"}, "v4 v2"),
        ({"q": "alice"}, "v4 v3 v2 v1"),
        ({"q": "al"}, "v4 v3 v2 v1"),
        ({"q": "lice"}, ""),
        ({"q": "alice@example.org"}, "v4 v3 v2 v1"),
    ],
)
def test_filters_find_summaries(page, varied, query, expected):
    varied.owner.email = "alice@example.org"
    varied.owner.save()
    assert rows_of(page(LIST, **query)) == expected.split()


def test_list_shows_what_a_reviewer_has_to_know(page, varied):
    plant(Summary.objects.get(version=1), tokens_before=400, tokens_after=100)
    text = page(LIST)
    for words in (
        *("2 facts unsupported", "gap before it", "generation 2", "editor"),
        *(
            "tokens: 9 (limit 8)",
            "400\u00a0→\u00a0100 (25%)",
            "#6–#8",
            "+3",
            "automatic",
        ),
    ):
        assert f">{words}<" in text
    assert f"/conversation/{varied.pk}/timeline/?v=4" in text


def test_flags_that_may_not_be_read_are_hidden(client, staff_with, conversation):
    summarise(conversation, 1, 2, flags={"dropped": ["number: 9,500"]})
    summarise(conversation, 3, 4)
    client.force_login(staff_with("metadata"))
    text = client.get(reverse(f"admin:memory_{LIST}")).content.decode()
    cells = re.findall(r'field-list_flags">([^<]*)<', text)
    assert cells == ["–", "hidden"]


@pytest.mark.django_db(transaction=True)
def test_list_marks_a_repaired_summary_whose_messages_had_changed(
    reviewer, page, alice
):
    policy = {"trigger": ["messages", 6], "keep": ["messages", 2]}
    made = transcript.create_conversation(alice, policy=policy)
    for turns in (3, 2):
        add_turns(made, turns)
        compact(made)
    actions.exclude_messages(made, [3])
    lease.reset_back_off(made)
    compact(made)
    text = page(LIST, trigger="change")
    assert rows_of(text) == ["v3"]
    assert ">messages changed<" in text
    address = reverse("admin:review-timeline", args=[made.pk])
    steps = " ".join(reviewer.get(address, {"v": 3}).content.decode().split())
    assert "<dt>Trigger</dt> <dd> messages changed" in steps


def test_a_page_follows_another_and_few_are_counted(
    reviewer, conversation, monkeypatch
):
    values = {"conversation": conversation, "first_seq": 1, "last_seq": 2}
    Summary.objects.bulk_create(
        Summary(version=n, status="superseded", model="m", **values)
        for n in range(1, 121)
    )
    url = reverse(f"admin:memory_{LIST}")
    first = reviewer.get(url).content.decode()
    last = reviewer.get(url, {"p": 3}).content.decode()
    assert rows_of(first) == [f"v{n}" for n in range(120, 70, -1)]
    assert rows_of(last) == [f"v{n}" for n in range(20, 0, -1)]
    for number in ("4", "0", "-1", "9" * 30):
        assert reviewer.get(url, {"p": number}).status_code == 302
    monkeypatch.setattr(ShortPaginator, "most", 60)
    assert "more than 60 summaries" in reviewer.get(url).content.decode()


def test_queries_use_an_index(varied):
    """Databases prefer a scan on an empty table, so scans are disabled."""
    rows = Summary.objects.order_by("-created_at", "-id").values("pk")
    questions = {
        "summary_newest": rows,
        "summary_by_trigger": rows.filter(trigger_kind="tokens"),
        "summary_by_status": rows.filter(status="failed"),
        "summary_by_level": rows.filter(level=1),
        "summary_by_preset": rows.filter(preset="guide"),
        "summary_unsupported": rows.filter(unsupported__isnull=False),
        "summary_rewritten": rows.filter(generation__gt=1),
        "summary_high_level": rows.filter(level__gte=4),
    }
    for index, question in questions.items():
        others = [name for name in questions if name != index]
        assert index in explained_without(others, question[:51])


def explained_without(indexes, question):
    """Explain without the order: a database may read a few rows by another index than
    many.
    """
    changes = [f"DROP INDEX {name}" for name in indexes]
    if connection.vendor == "postgresql":
        changes += ["SET LOCAL enable_seqscan = off", "SET LOCAL enable_sort = off"]
    with transaction.atomic():
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                forget_statistics(cursor)
            for change in changes:
                cursor.execute(change)
        plan = question.explain()
        transaction.set_rollback(True)
    return plan


def test_list_loads_no_text(reviewer, versions):
    with CaptureQueriesContext(connection) as queries:
        reviewer.get(reverse(f"admin:memory_{LIST}"))
    assert not any('"memory_summary"."text",' in query["sql"] for query in queries)


def test_page_links_to_its_sources(page, versions):
    text = page("summary_change", versions[1].pk)
    assert '<pre class="wrap">The second text.</pre>' in text
    assert f"/timeline/?v={versions[1].version}" in text
    assert f">{versions[0]}</a>" in text


def test_page_hides_texts_from_staff_who_see_numbers_alone(
    client, staff_with, conversation
):
    first = summarise(
        conversation, 1, 4, text="Their secret.", structured={"a": "Zanzibar"}
    )
    client.force_login(staff_with("metadata"))
    url = reverse("admin:memory_summary_change", args=[first.pk])
    text = client.get(url).content.decode()
    assert "hidden, 13 characters" in text
    assert "secret" not in text
    assert "Zanzibar" not in text


@pytest.mark.parametrize(
    "trigger", [{}, [], {"kind": None}, {"kind": ["x"], "limit": {"a": 1}}, "text"]
)
def test_list_survives_an_invalid_trigger(page, conversation, trigger):
    version = summarise(conversation, 1, 4)
    plant(version, trigger=trigger, flags=trigger)
    assert rows_of(page(LIST)) == ["v1"]
    assert "#1–#4" in page("summary_change", version.pk)


def test_list_takes_as_many_queries_for_many_rows_as_for_few(page, alice, conversation):
    counts = []
    for _ in range(2):
        more = transcript.create_conversation(alice)
        talk(more, 2)
        row = summarise(more, 1, 2)
        summarise(more, 1, 4, replaces=[row])
        page(LIST)
        with CaptureQueriesContext(connection) as queries:
            page(LIST)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 7
