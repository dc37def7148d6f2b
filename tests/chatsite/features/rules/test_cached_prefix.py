"""Rules at the beginning of a request that its provider has in its cache."""

import pytest

from memory import context, transcript
from memory.models import ModelCall
from memory.view import rebuilding
from tests.memory.scenes import ask, compact, record, reply_to
from tests.memory.test_cached_prefix import CACHED, conversation, is_in_place, talk

from .scenes import state_rule

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["conversation"]


def test_changed_rules_are_in_no_cached_prefix(conversation):
    talk(conversation, **CACHED)
    state_rule(conversation, "Always answer in rhyme.")
    assert not is_in_place(compact(conversation).requests[0])


def test_rules_are_part_of_the_beginning(conversation):
    state_rule(conversation, "Always answer in rhyme.", text="Answer in couplets.")
    talk(conversation, **CACHED)
    (request,) = compact(conversation).requests
    assert is_in_place(request)
    assert "Answer in couplets." in request[1].text
    call = conversation.model_calls.get(purpose=ModelCall.Purpose.SUMMARY)
    assert rebuilding.verify_context(call)


def test_rules_for_which_there_was_no_room_are_in_no_beginning(alice):
    limit, policy = 4000, {"trigger": ["turns", 3], "keep": ["turns", 1]}
    conversation = transcript.create_conversation(
        alice, policy=policy | {"rules": "keep"}
    )
    cities = [f"Always mention city number {n}." for n in range(10)]
    for text in (" ".join(cities[:5]), " ".join(cities[5:]), "Go on"):
        newest = ask(conversation, text)
        built = context.build_request_context(
            conversation, newest=newest, model="m", limit=limit
        )
        record(conversation, built, reply_to(newest, "Yes."), **CACHED)
        conversation.refresh_from_db()
    assert 0 < len(built.refs["rules"]) < len(cities)
    (request,) = compact(conversation, limit=limit).requests
    assert is_in_place(request)
    assert request[0] == built.messages[0]
