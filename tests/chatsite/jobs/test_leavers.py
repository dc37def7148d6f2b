"""A deactivated account ends all access and all work of its user."""

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db.models.functions import Now
from django.test import Client

from chatsite.accounts import sessions
from chatsite.features.sharing.services import create_share
from chatsite.features.tools import late_results
from chatsite.features.tools.models import ToolCall
from chatsite.jobs import leavers, queue
from chatsite.turns import lifecycle, spending
from chatsite.turns.models import Job, Turn
from memory.compaction.compactor import RefusedError

from ..scenes import Use, answer, submit, use_tools, violations

pytestmark = pytest.mark.django_db(transaction=True)


def leave(user, *, back=False):
    get_user_model().objects.filter(pk=user.pk).update(is_active=back)


def sweep():
    """Run the part of a sweep that concerns leavers."""
    for job in leavers.JOBS:
        async_to_sync(job.sweep)()


def test_a_request_and_a_socket_are_refused(alice, client):
    key = client.cookies["sessionid"].value
    holder = (key, alice.pk)
    assert client.get("/").status_code == 200
    assert sessions.find_ended({holder}) == set()
    leave(alice)
    assert client.get("/").status_code == 302
    assert sessions.find_ended({holder}) == {holder}


def test_a_log_in_is_refused(alice):
    leave(alice)
    fields = {"username": "alice", "password": "alice-secret"}
    assert Client().post("/accounts/login/", fields).status_code == 200


def test_a_link_shows_nothing(alice, conversation):
    path = f"/s/{create_share(conversation).token}/"
    assert Client().get(path).status_code == 200
    leave(alice)
    assert Client().get(path).status_code == 404


def test_replies_are_stopped_and_those_that_wait_do_not_begin(alice, conversation):
    submit(conversation, "First")
    running = lifecycle.claim(conversation.pk)
    submit(conversation, "Second")
    leave(alice)
    assert leavers.find_open_turns().count() == 2
    sweep()
    assert not Turn.objects.filter(state__in=Turn.UNFINISHED).exists()
    late = lifecycle.finish(running, lifecycle.TurnResult(Turn.State.DONE, "Too late"))
    assert (late.state, late.reply) == (Turn.State.STOPPED, None)
    assert violations() == []


def test_turns_of_leavers_are_not_claimed_before_the_sweep(alice, conversation):
    submit(conversation, "Hello")
    leave(alice)
    assert lifecycle.claim(conversation.pk) is None
    leave(alice, back=True)
    answer(conversation)
    assert violations() == []


def test_turns_of_other_users_go_on(alice, bob, conversation):
    submit(conversation, "Hello")
    leave(bob)
    sweep()
    assert lifecycle.claim(conversation.pk)


def test_a_job_is_cancelled(alice, bob):
    claim, other = queue.add("test", alice, "a"), queue.add("test", bob, "b")
    queue.begin(claim, 1)
    leave(alice)
    sweep()
    going = Job.objects.get(cancel_requested_at=None)
    assert going.pk == other.row_id
    assert not leavers.find_open_jobs().exists()


def test_spending_of_leavers_is_refused_beside_replies(alice):
    async def spend():
        async with spending.hold_place(alice.pk, "demo"):
            pass

    async_to_sync(spend)()
    leave(alice)
    with pytest.raises(RefusedError) as refused:
        async_to_sync(spend)()
    assert refused.value.code == "deactivated"


def test_a_result_that_comes_later_is_not_asked_for(alice, conversation):
    use_tools(conversation, "Remind me", Use(state="late", result="Soon."))
    ToolCall.objects.update(next_look_at=Now())
    assert late_results.due().count() == 1
    leave(alice)
    assert late_results.claim() == []
    leave(alice, back=True)
    assert len(late_results.claim()) == 1
