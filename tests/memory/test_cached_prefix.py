"""A summary that the conversation's own model is asked for at the end of what its
provider has in its cache."""

from datetime import timedelta

import pytest
from django.utils import timezone

from memory import actions, context, transcript
from memory.compaction import preparation
from memory.compaction.commit import InvokeError
from memory.engine.compose import digest_wire, to_wire
from memory.engine.summaries import prompts
from memory.engine.summaries.material import read_request
from memory.integrity import audit
from memory.models import ModelCall
from memory.view import rebuilding

from .scenes import (
    ask,
    call_tools,
    compact,
    plant,
    say,
)

pytestmark = pytest.mark.django_db(transaction=True)
CACHED = {"tokens_input": 2000, "tokens_cached": 1920}


@pytest.fixture
def conversation(alice):
    policy = {"trigger": ["turns", 3], "keep": ["turns", 1], "max_summary_tokens": 60}
    return transcript.create_conversation(
        alice, policy=policy, system_prompt="Be kind."
    )


def talk(conversation, **reported):
    for n in range(3):
        say(conversation, f"Text {n}", **reported)


def is_in_place(request):
    return request[-1].text.startswith(prompts.INITIAL_IN_PLACE)


def test_summary_request_begins_like_the_last_reply_request(conversation):
    talk(conversation, **CACHED)
    recorder = compact(conversation)
    (request,) = recorder.requests
    assert is_in_place(request)
    texts = [message.text for message in request[:-1]]
    assert texts == [
        "Be kind.",
        "Text 0",
        "Reply to: Text 0",
        "Text 1",
        "Reply to: Text 1",
    ]
    assert recorder.read == [[1, 2, 3, 4]]
    assert recorder.cache_keys == [str(conversation.uuid)]


def test_summary_request_begins_like_the_next_reply_request(conversation):
    """The request begins with a summary, its fence and a pinned message."""
    talk(conversation, **CACHED)
    compact(conversation)
    actions.pin_message(conversation, 2)
    for n in (3, 4):
        say(conversation, f"Text {n}", **CACHED)
    conversation.refresh_from_db()
    sent = context.build_request_context(conversation).messages
    (request,) = compact(conversation).requests
    assert is_in_place(request)
    assert len(request) > 6
    assert request[:-1] == sent[: len(request) - 1]


def test_summary_request_can_be_rebuilt(conversation):
    talk(conversation, **CACHED)
    (request,) = compact(conversation, "They talked of tea.").requests
    call = conversation.model_calls.get(purpose=ModelCall.Purpose.SUMMARY)
    assert call.sha256 == digest_wire(to_wire(request, model="m"))
    assert call.refs["messages"] == [1, 4]
    assert rebuilding.verify_context(call)
    assert rebuilding.rebuild_context(call).messages[-1].text == request[-1].text
    assert list(audit.check_memory()) == []
    # Other words in one of its messages are found out.
    plant(conversation.messages.get(seq=3), text="Other words")
    assert not rebuilding.verify_context(call)


@pytest.mark.parametrize(
    "reported",
    [
        {},
        {"tokens_input": 2000},
        {"tokens_input": 2000, "tokens_cached": 0},
        {"tokens_input": 900, "tokens_cached": 896},
        {"tokens_input": 9000, "tokens_cached": 1024},
        CACHED | {"model": "another"},
    ],
)
def test_messages_are_a_document_without_a_cache(conversation, reported):
    talk(conversation, **reported)
    recorder = compact(conversation)
    assert not is_in_place(recorder.requests[0])
    assert recorder.read == [[1, 2, 3, 4]]
    assert recorder.cache_keys == [""]
    call = conversation.model_calls.get(purpose=ModelCall.Purpose.SUMMARY)
    assert set(call.refs) == {"messages", "summaries"}


def test_expired_cache_is_not_used(conversation, monkeypatch):
    talk(conversation, **CACHED)
    later = timezone.now() + timedelta(minutes=6)
    monkeypatch.setattr(preparation.timezone, "now", lambda: later)
    assert not is_in_place(compact(conversation).requests[0])


def test_messages_are_a_document_with_tools(conversation):
    """The tools that the chat sends would stand before the beginning, and the model
    might call one of them."""
    talk(conversation, **CACHED)
    type(conversation).objects.update(tools=["search_transcript"])
    assert not is_in_place(compact(conversation).requests[0])


def test_prefix_contains_no_tool_calls(conversation):
    message = ask(conversation, "Look it up")
    call_tools(message, ("search", "Nothing."))
    seq = transcript.reserve_numbers(conversation, 1)
    transcript.append_reply(conversation, seq=seq, text="There is nothing.")
    talk(conversation, **CACHED)
    assert not is_in_place(compact(conversation).requests[0])


def test_messages_are_a_document_after_a_failure(conversation):
    talk(conversation, **CACHED)
    first = compact(conversation, InvokeError("refused"))
    assert is_in_place(first.requests[0])
    second = compact(conversation, force=True)
    assert not is_in_place(second.requests[0])
    assert conversation.summaries.filter(status="active").count() == 1


@pytest.mark.parametrize("change", ["prompt", "pin", "shortened"])
def test_changed_beginning_is_in_no_cache(conversation, change):
    talk(conversation, **CACHED)
    if change == "prompt":
        type(conversation).objects.update(system_prompt="Be brief.")
    elif change == "pin":
        compact(conversation)
        for n in (3, 4):
            say(conversation, f"Text {n}", **CACHED)
        actions.pin_message(conversation, 2)
    else:
        call = conversation.model_calls.latest("id")
        plant(call, refs=call.refs | {"left_out": [[1, 2]]})
    assert not is_in_place(compact(conversation).requests[0])


def test_cached_prefix_can_be_switched_off(alice):
    policy = {"trigger": ["turns", 3], "keep": ["turns", 1], "cached_prefix": False}
    conversation = transcript.create_conversation(alice, policy=policy)
    talk(conversation, **CACHED)
    assert not is_in_place(compact(conversation).requests[0])


def test_prefix_leaves_room_for_the_instruction(conversation):
    talk(conversation, **CACHED)
    assert not is_in_place(compact(conversation, limit=1500).requests[0])


def test_invalid_summary_is_requested_again_as_a_document(conversation):
    talk(conversation, **CACHED)
    recorder = compact(
        conversation, "I'm sorry, I can't help with that.", "They talked."
    )
    first, second = recorder.requests
    assert is_in_place(first)
    assert read_request(second) == read_request(first) | {"max_tokens": 60}
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.SUMMARY)
    assert ["instruction" in call.refs for call in calls.order_by("id")] == [
        True,
        False,
    ]
    assert conversation.summaries.get().text == "They talked."
