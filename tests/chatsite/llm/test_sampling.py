"""Temperature and length of replies, as they are sent to the provider."""

import pytest
from langchain_core.messages import HumanMessage

from chatsite.llm import providers
from chatsite.llm.streaming import ReplyStream, fetch_reply

MESSAGES = [HumanMessage("hi!")]


async def read(name, bind):
    return "".join([piece async for piece in ReplyStream(name, MESSAGES, bind=bind)])


async def test_a_temperature_is_sent(upstream):
    await read("ok", providers.sampling_options("ok", 0.7))
    assert upstream.calls[0].body["temperature"] == 0.7


async def test_unset_options_are_not_sent(upstream, settings):
    settings.SUMMARY_TEMPERATURE = None
    await read("ok", providers.sampling_options("ok", None))
    await fetch_reply("ok", MESSAGES)
    names = {"temperature", "max_tokens", "max_completion_tokens"}
    assert [names & each.body.keys() for each in upstream.calls] == [set(), set()]


async def test_summaries_are_as_cool_as_can_be(upstream):
    await fetch_reply("ok", MESSAGES, max_tokens=300)
    body = upstream.calls[0].body
    assert (body["temperature"], body["max_tokens"]) == (0, 300)
    assert "max_completion_tokens" not in body


def test_openai_has_a_name_of_its_own_for_the_longest_reply(settings):
    settings.OPENAI_API_KEY = "sk-x"
    options = providers.sampling_options("gpt-5.4-mini", 0.0, 300)
    assert options == {"temperature": 0, "max_completion_tokens": 300}
    payload = providers.build("gpt-5.4-mini")._get_request_payload(MESSAGES, **options)
    assert payload["max_completion_tokens"] == 300
    assert "max_tokens" not in payload


@pytest.mark.parametrize("field", ["temperature", "max_tokens"])
async def test_refused_options_are_left_out_afterwards(upstream, field):
    model = f"strict:{field}"
    for _ in range(2):
        reply = await fetch_reply(model, MESSAGES, max_tokens=300)
        assert reply.text == "Reply to: hi!"
    assert [field in each.body for each in upstream.calls] == [True, False, False]
    other = ({"temperature", "max_tokens"} - {field}).pop()
    assert all(other in each.body for each in upstream.calls)


def test_the_demo_model_takes_none(settings):
    assert providers.sampling_options("demo", 0.7, 300) == {}
