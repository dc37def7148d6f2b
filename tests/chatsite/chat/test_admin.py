"""Turns in the admin."""

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.chat import turns
from chatsite.chat.models import Allowance, Turn
from memory import transcript

LIST = "admin:chat_turn_changelist"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def reader(client, staff):
    client.force_login(staff)
    return client


def answer(owner, text="Reply"):
    conversation = transcript.create(owner)
    turns.submit(conversation, text="Hello", client_id="a")
    claim = turns.claim(conversation.pk)
    failed = turns.Result(Turn.State.FAILED, text, error="timeout")
    return turns.finish(claim, failed)


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


class TestAllowances:
    @pytest.fixture
    def allowance(self, conversation):
        return Allowance.objects.get(user=conversation.owner)

    def test_staff_see_what_was_used_and_change_the_budget(self, reader, allowance):
        listed = reader.get("/admin/chat/allowance/").content.decode()
        assert "alice" in listed
        assert "no limit" in listed
        page = f"/admin/chat/allowance/{allowance.pk}/change/"
        shown = reader.get(page).content.decode()
        assert f"{allowance.tokens_used:,}" in shown
        done = reader.post(page, {"tokens_per_day": "5000", "tokens_used": "0"})
        assert done.status_code == 302
        before = allowance.tokens_used
        allowance.refresh_from_db()
        assert (allowance.tokens_per_day, allowance.tokens_used) == (5000, before)
        entry = LogEntry.objects.get()
        assert entry.object_id == str(allowance.pk)
        assert "tokens" in entry.get_change_message().lower()

    def test_nothing_used_can_be_given_back(self, reader, allowance):
        page = f"/admin/chat/allowance/{allowance.pk}/delete/"
        assert reader.post(page, {"post": "yes"}).status_code == 403

    def test_somebody_new_can_be_given_a_budget(self, reader, bob):
        values = {"user": bob.pk, "tokens_per_day": "10"}
        done = reader.post("/admin/chat/allowance/add/", values)
        assert done.status_code == 302
        assert Allowance.objects.get(user=bob).tokens_per_day == 10
