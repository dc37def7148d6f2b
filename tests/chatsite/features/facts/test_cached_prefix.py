"""Facts at the beginning of a request that its provider has in its cache."""

import pytest

from memory.models import ModelCall
from memory.view import rebuilding
from tests.memory.scenes import compact
from tests.memory.test_cached_prefix import CACHED, conversation, is_in_place, talk

from .scenes import keep_fact, start

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["conversation"]


def use_facts(conversation):
    policy = {**conversation.policy, "facts": "on"}
    type(conversation).objects.filter(pk=conversation.pk).update(policy=policy)
    conversation.refresh_from_db()


def test_facts_are_part_of_the_beginning(conversation):
    use_facts(conversation)
    keep_fact(start(conversation.owner), "I live in Zurich.")
    talk(conversation, **CACHED)
    (request,) = compact(conversation).requests
    assert is_in_place(request)
    assert "I live in Zurich</fact>" in request[1].text
    call = conversation.model_calls.get(purpose=ModelCall.Purpose.SUMMARY)
    assert rebuilding.verify_context(call)


def test_changed_facts_are_in_no_cached_prefix(conversation):
    use_facts(conversation)
    talk(conversation, **CACHED)
    keep_fact(start(conversation.owner), "I live in Zurich.")
    assert not is_in_place(compact(conversation).requests[0])
