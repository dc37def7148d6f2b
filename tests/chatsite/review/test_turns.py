"""Turns in the admin."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.review.admin.turns import TurnAdmin
from chatsite.turns import lifecycle
from chatsite.turns.models import Turn
from memory import transcript
from tests.memory.scenes import plant, say

LIST = "admin:chat_turn_changelist"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def reader(client, staff):
    client.force_login(staff)
    return client


def answer(owner, text="Reply"):
    conversation = transcript.create(owner)
    lifecycle.submit(conversation, text="Hello", client_id="a")
    claim = lifecycle.claim(conversation.pk)
    failed = lifecycle.Result(Turn.State.FAILED, text, error="timeout")
    return lifecycle.finish(claim, failed)


def test_it_shows_how_a_reply_came_about(reader, alice):
    turn = answer(alice, HOSTILE)
    text = reader.get(reverse("admin:chat_turn_change", args=[turn.pk])).content
    assert b"The model took too long to answer." in text
    assert b"&lt;script&gt;" in text
    assert b"<script>alert" not in text


def test_it_filters_by_state(reader, alice):
    answer(alice)
    assert b"timeout" in reader.get(reverse(LIST), {"state__exact": "failed"}).content
    assert b"timeout" not in reader.get(reverse(LIST), {"state__exact": "done"}).content


def test_it_lets_nobody_change_anything(reader, alice):
    turn = answer(alice)
    for act, args in (("add", []), ("change", [turn.pk]), ("delete", [turn.pk])):
        url = reverse(f"admin:chat_turn_{act}", args=args)
        assert reader.post(url, {"post": "yes"}).status_code == 403


def test_it_asks_as_much_for_many_rows_as_for_few(reader, alice, bob):
    answer(alice)
    reader.get(reverse(LIST))
    with CaptureQueriesContext(connection) as few:
        reader.get(reverse(LIST))
    for owner in (alice, bob, alice):
        answer(owner)
    with CaptureQueriesContext(connection) as many:
        reader.get(reverse(LIST))
    assert len(many) == len(few)


def make(owner, *states):
    conversation = transcript.create(owner)
    for number, state in enumerate(states):
        message, _ = transcript.append_user_message(
            conversation, text="Hi", client_id=f"{number}"
        )
        Turn.objects.create(
            conversation=conversation, user_message=message, state=state, reply_seq=9
        )
    return conversation


def test_what_went_wrong_comes_first(reader, alice):
    make(alice, "failed", "done", "truncated", "stopped", "interrupted", "queued")
    rows = reader.get(reverse(LIST)).context["cl"].result_list
    assert [row.state for row in rows] == [
        *("interrupted", "truncated", "failed"),
        *("queued", "stopped", "done"),
    ]


def test_an_index_has_that_order(reader, alice):
    """So a million turns are not sorted for one page of them."""
    make(alice, "failed", "done")
    rows = (
        reader.get(reverse(LIST)).context["cl"].queryset.order_by(*TurnAdmin.ordering)
    )
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
        assert (
            "turn_failing_first" in rows.only("pk").select_related(None)[:50].explain()
        )


def test_it_says_how_long_each_part_took(reader, alice):
    turn = answer(alice)
    start = turn.created_at
    plant(turn, started_at=start + timedelta(seconds=1.5))
    plant(turn, finished_at=start + timedelta(seconds=9.04))
    call = say(turn.conversation, "Hi")
    plant(call, first_token_ms=2340)
    plant(turn, call=call)
    text = reader.get(reverse(LIST)).content.decode()
    for seconds in ("1.5", "2.3", "9.0"):
        assert f">{seconds}\u00a0s<" in text
    assert reverse("admin:memory_modelcall_change", args=[call.pk]) in text
