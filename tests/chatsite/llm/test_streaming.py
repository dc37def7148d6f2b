"""ReplyStream with the real client of LangChain against the fake provider."""

import asyncio
import json
import time

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel

from chatsite.llm import streaming
from chatsite.llm.errors import LLMError
from chatsite.llm.streaming import (
    MAX_REPLY_CHARS,
    ReplyStream,
    TokenUsage,
    clean_text,
    fetch_reply,
)
from tests.fakes import upstream as fake
from tests.patience import within

MESSAGES = [SystemMessage("Be brief."), HumanMessage("hi! I'm Lance")]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    """The pauses between attempts are tested on their own."""
    monkeypatch.setattr(streaming, "FIRST_PAUSE", 0.001)


async def read(stream):
    return "".join([piece async for piece in stream])


async def read_until_error(stream, pause=0.0):
    pieces = []
    try:
        async for piece in stream:
            pieces.append(piece)
            await asyncio.sleep(pause)
    except LLMError as error:
        return "".join(pieces), error
    pytest.fail(f"No error, but {''.join(pieces)!r}")


class TestCompleteReplies:
    async def test_stream_passes_the_text_on_piece_by_piece(self, upstream):
        stream = ReplyStream("ok-slow:5:0.05", MESSAGES)
        pieces = [piece async for piece in stream]
        assert "".join(pieces).count("word") == 5
        assert len(pieces) > 1

    async def test_received_text_is_passed_on_at_once(self, upstream):
        """Events as long as OpenAI's, of which one turn reads a dozen: a reader that
        pauses after each piece would fall behind a fast provider."""

        def answer(x):
            x.write(b"".join(map(as_event, range(2_000))))
            x.end()

        def as_event(number):
            choice = {"index": 0, "delta": {"content": f"{number} "}}
            event = {"id": "x" * 300, "choices": [choice]}
            return f"data: {json.dumps(event)}\n\n".encode()

        upstream.script(answer)
        pieces = [piece async for piece in ReplyStream("ok", MESSAGES)]
        assert "".join(pieces).split() == list(map(str, range(2_000)))
        assert len(pieces) < 2_000 / 20

    async def test_stream_sends_the_messages_it_was_given(self, upstream):
        await read(ReplyStream("ok", MESSAGES))
        assert upstream.calls[0].messages == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi! I'm Lance"},
        ]

    async def test_stream_reports_usage_and_finish_reason(self, upstream):
        stream = ReplyStream("ok", MESSAGES)
        await read(stream)
        assert stream.usage == TokenUsage(input=15, cached=0, output=6)
        assert stream.finish_reason == "stop"
        assert stream.attempts == 1
        assert stream.first_token_ms is not None

    async def test_stream_reports_cached_tokens(self, upstream):
        await read(ReplyStream("ok", MESSAGES))
        stream = ReplyStream("ok", [MESSAGES[0], HumanMessage("again")])
        await read(stream)
        assert stream.usage.cached == 7

    async def test_stream_keeps_the_reason_of_a_reply_cut_at_the_limit(self, upstream):
        stream = ReplyStream("length", MESSAGES)
        assert await read(stream) == "This reply is"
        assert stream.finish_reason == "length"

    @pytest.mark.parametrize("mode", ["eof", "no-reason"])
    async def test_stream_knows_no_reason_when_the_stream_just_ends(
        self, upstream, mode
    ):
        stream = ReplyStream(mode, MESSAGES)
        assert (await read(stream)).startswith("This reply")
        assert stream.finish_reason is None

    async def test_stream_does_not_wait_for_a_connection_after_the_end(
        self, upstream, monkeypatch
    ):
        monkeypatch.setattr(streaming, "USAGE_TIMEOUT", 0.1)
        stream = ReplyStream("hang-end", MESSAGES)
        assert await read(stream) == "All is said"
        assert stream.finish_reason == "stop"

    async def test_stream_ignores_unrequested_events_and_calls(self, upstream):
        stream = ReplyStream("foreign-events", MESSAGES)
        assert await read(stream) == "Honest reply"
        assert stream.calls == []

    async def test_stream_collects_the_calls_of_bound_tools(self, upstream):
        tool = {"type": "function", "function": {"name": "search_transcript"}}
        stream = ReplyStream("tool-call", MESSAGES, bind={"tools": [tool]})
        assert await read(stream) == ""
        assert stream.finish_reason == "tool_calls"
        assert stream.calls[0]["args"] == '{"query": "49ers"}'

    async def test_stream_survives_a_flood_of_empty_deltas(self, upstream):
        assert await read(ReplyStream("empty-deltas:2000", MESSAGES)) == "At last."

    async def test_stream_cuts_a_reply_that_is_far_too_long(self, upstream):
        stream = ReplyStream("huge", MESSAGES)
        assert len(await read(stream)) == MAX_REPLY_CHARS
        assert stream.finish_reason == "length"


class TestErrors:
    @pytest.mark.parametrize(
        ("mode", "code", "calls"),
        [
            ("400", "bad_request", 1),
            ("400-context", "context_length", 1),
            ("400-filter", "content_filter", 1),
            ("401", "auth", 1),
            ("403", "auth", 1),
            ("404", "bad_request", 1),
            ("429", "rate_limited", 3),
            ("429-retry-after:0.01", "rate_limited", 3),
            ("429-retry-after:3600", "rate_limited_long", 1),
            ("429-retry-after:nan", "rate_limited", 3),
            ("402", "quota", 1),
            ("only-reasoning", "only_reasoning", 1),
            ("429-quota", "quota", 1),
            ("500", "unavailable", 3),
            ("503", "unavailable", 3),
            ("reset-first", "unavailable", 3),
            ("done-only", "bad_response", 3),
            ("html", "bad_response", 3),
            ("empty", "bad_response", 1),
        ],
    )
    async def test_stream_names_an_error_before_the_first_token(
        self, upstream, caplog, mode, code, calls
    ):
        stream = ReplyStream(mode, MESSAGES)
        text, error = await read_until_error(stream)
        assert (text, error.code) == ("", code)
        assert len(upstream.calls) == stream.attempts == calls
        # What an operator has to mend, and nothing that passes by itself.
        found = [each for each in caplog.records if each.levelname == "ERROR"]
        assert len(found) == (code == "auth")

    @pytest.mark.parametrize(
        ("mode", "code", "text"),
        [
            ("reset", "unavailable", "Before the reset"),
            ("cut", "unavailable", "Before the cut"),
            ("bad-json", "bad_response", "Before the noise"),
            ("bad-shape", "bad_response", "Before the noise"),
            ("bad-utf8", "bad_response", "Before the noise"),
            ("error-event", "unavailable", "Before the error"),
            ("error-event-length", "context_length", "Before the error"),
        ],
    )
    async def test_stream_does_not_try_again_after_the_first_token(
        self, upstream, mode, code, text
    ):
        stream = ReplyStream(mode, MESSAGES)
        seen, error = await read_until_error(stream)
        assert (seen, error.code) == (text, code)
        assert len(upstream.calls) == stream.attempts == 1

    async def test_stream_reads_all_that_came_before_a_cut_however_late(
        self, upstream, monkeypatch
    ):
        def answer(x):
            x.texts("Before")
            x.wait(0.1)
            x.texts(" the cut")
            x.cut()

        monkeypatch.setitem(fake.MODES, "late-cut", answer)
        stream = ReplyStream("late-cut", MESSAGES)
        text, _ = await read_until_error(stream, pause=0.4)
        assert text == "Before the cut"

    async def test_stream_continues_when_a_later_attempt_succeeds(self, upstream):
        upstream.script("503", "429", "ok")
        stream = ReplyStream("ok", MESSAGES)
        assert await read(stream) == "Reply to: hi! I'm Lance"
        assert stream.attempts == 3

    async def test_stream_waits_as_long_as_the_provider_asks(self, upstream):
        upstream.script("429-retry-after:0.3", "ok")
        started = time.monotonic()
        await read(ReplyStream("ok", MESSAGES))
        assert time.monotonic() - started >= 0.3

    async def test_unreachable_address_is_an_error(self, upstream):
        upstream.stop()
        _, error = await read_until_error(ReplyStream("ok", MESSAGES))
        assert error.code == "unavailable"

    async def test_stream_never_repeats_the_key(self, upstream, caplog):
        caplog.set_level("DEBUG")
        _, error = await read_until_error(ReplyStream("401", MESSAGES))
        assert "sk-test-SECRET" in upstream.calls[0].headers["authorization"]
        seen = f"{error} {error!r} {error.detail} {error.__cause__!r} {caplog.text}"
        assert "SECRET" not in seen


class TestDeadlines:
    async def test_stream_gives_up_on_a_provider_that_falls_silent(self, upstream):
        stream = ReplyStream("hang-mid", MESSAGES, idle=0.3)
        _, error = await read_until_error(stream)
        assert error.code == "timeout"
        assert await asyncio.to_thread(upstream.wait_closed_early)

    @pytest.mark.parametrize("mode", ["hang", "comments", "empty-forever"])
    async def test_stream_does_not_ask_again_after_silence(self, upstream, mode):
        stream = ReplyStream(mode, MESSAGES, first=1)
        _, error = await read_until_error(stream)
        assert error.code == "timeout"
        assert len(upstream.calls) == stream.attempts == 1
        assert await asyncio.to_thread(upstream.wait_closed_early)

    async def test_a_reply_may_begin_later_than_its_pieces_follow(self, upstream):
        stream = ReplyStream("slow-start:0.6", MESSAGES, first=5, idle=0.2)
        assert await read(stream) == "At last."

    async def test_reasoning_counts_as_life(self, upstream):
        stream = ReplyStream("reasoning:15:0.1", MESSAGES, first=1, idle=1)
        assert await read(stream) == "The answer."
        assert stream.reasoning.startswith("thought 0 thought 1 ")

    @pytest.mark.parametrize("mode", ["after-stop", "after-stop:more"])
    async def test_data_after_the_finish_reason_causes_no_delay(
        self, upstream, monkeypatch, mode
    ):
        monkeypatch.setattr(streaming, "USAGE_TIMEOUT", 0.3)
        stream = ReplyStream(mode, MESSAGES)
        with within(3):
            assert (await read(stream)).startswith("All is said.")
        assert stream.finish_reason == "stop"

    async def test_stream_ends_a_drip_at_the_total_deadline(self, upstream):
        stream = ReplyStream("drip", MESSAGES, total=2)
        text, error = await read_until_error(stream)
        assert error.code == "timeout"
        assert "x" in text

    async def test_stream_counts_all_attempts_into_the_total(self, upstream):
        upstream.script("503", "503", "hang")
        stream = ReplyStream("ok", MESSAGES, total=1.5)
        with within(4):
            await read_until_error(stream)
        assert stream.attempts == 3


class TestQuirks:
    async def test_a_byte_order_mark_costs_nothing(self, upstream):
        assert await read(ReplyStream("bom", MESSAGES)) == "First, second."

    async def test_a_server_that_does_not_stream_is_read_too(self, upstream):
        stream = ReplyStream("plain-json", MESSAGES)
        assert await read(stream) == "Reply to: hi! I'm Lance"
        assert stream.finish_reason == "stop"
        assert stream.usage == TokenUsage(input=15, cached=0, output=6)
        assert len(upstream.calls) == 1

    async def test_a_refusal_alone_is_the_reply(self, upstream):
        stream = ReplyStream("refusal", MESSAGES)
        assert await read(stream) == "I cannot talk about that."
        assert stream.refusal == "I cannot talk about that."

    async def test_a_refusal_to_summarise_is_known_as_one(self, upstream):
        message = await fetch_reply("refusal", MESSAGES)
        assert message.additional_kwargs["refusal"] == "I cannot talk about that."

    @pytest.mark.parametrize(
        ("usage", "expected"),
        [
            ({"prompt_tokens": -1, "completion_tokens": 4}, (None, None, 4)),
            ({"prompt_tokens": 2**40, "completion_tokens": 2**70}, (None, None, None)),
            ({"prompt_tokens": None, "completion_tokens": None}, (None, None, None)),
            ({"prompt_tokens": 0, "completion_tokens": 0}, (None, None, None)),
            ({"completion_tokens": 4}, (None, None, 4)),
            ({"prompt_tokens": "9", "completion_tokens": [1]}, (None, None, None)),
            ({"prompt_tokens": True, "completion_tokens": 4.0}, (None, None, 4)),
            ({"prompt_tokens": 9, "prompt_tokens_details": 7}, (9, 0, None)),
            (
                {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 99}},
                (9, 9, None),
            ),
            (
                {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": -5}},
                (9, 0, None),
            ),
            ({}, (None, None, None)),
            ([1], (None, None, None)),
            ("many", (None, None, None)),
            (7, (None, None, None)),
        ],
    )
    async def test_token_counts_that_can_not_be_meant_are_unknown(
        self, upstream, usage, expected
    ):
        value = json.dumps(usage).replace(":", ";")
        stream = ReplyStream(f"usage:{value}", MESSAGES)
        assert await read(stream) == "A complete answer."
        found = stream.usage or TokenUsage(None, None, None)
        assert (found.input, found.cached, found.output) == expected


class TestStopping:
    async def test_closing_the_stream_closes_the_connection(self, upstream):
        stream = ReplyStream("ok-slow:1000:0.01", MESSAGES)
        await anext(stream)
        await stream.aclose()
        assert await asyncio.to_thread(upstream.wait_closed_early, seconds=1.0)

    async def test_cancelling_the_task_closes_the_connection(self, upstream):
        stream = ReplyStream("drip", MESSAGES)
        await anext(stream)
        task = asyncio.create_task(read(stream))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(upstream.wait_closed_early, seconds=1.0)

    async def test_stream_can_be_closed_before_its_start(self, upstream):
        await ReplyStream("ok", MESSAGES).aclose()
        assert upstream.calls == []


class TestClean:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("plain 中文 🙂\r\n\u2028", "plain 中文 🙂\r\n\u2028"),
            ("a\x00b", "ab"),
            ("a\ud800b", "a\ufffdb"),
            ("\udc00", "\ufffd"),
            ("\ud83d\ude00", "😀"),
            ("", ""),
        ],
    )
    def test_stream_keeps_everything_that_can_be_stored(self, text, expected):
        assert clean_text(text) == expected

    @pytest.mark.parametrize(
        ("mode", "expected"),
        [
            ("nul", "ab"),
            ("surrogate", "a\ufffdb\ufffd"),
            ("split-surrogate", "smile 😀!"),
        ],
    )
    async def test_stream_cleans_what_comes_from_the_model(
        self, upstream, mode, expected
    ):
        assert await read(ReplyStream(mode, MESSAGES)) == expected


class TestComplete:
    async def test_stream_returns_text_usage_and_reason(self, upstream):
        message = await fetch_reply("ok", MESSAGES, max_tokens=50)
        assert message.content == "Reply to: hi! I'm Lance"
        assert message.usage_metadata["input_tokens"] == 15
        assert message.response_metadata["finish_reason"] == "stop"
        assert message.response_metadata["attempts"] == 1
        assert upstream.calls[0].body["max_tokens"] == 50

    @pytest.mark.parametrize(
        ("mode", "text", "reason"),
        [
            ("empty", "", "stop"),
            ("content_filter", "This reply is", "content_filter"),
            ("eof", "This reply just", None),
        ],
    )
    async def test_stream_leaves_judging_to_the_caller(
        self, upstream, mode, text, reason
    ):
        message = await fetch_reply(mode, MESSAGES)
        assert message.content == text
        assert message.response_metadata["finish_reason"] == reason

    async def test_missing_reason_is_accepted_by_a_setting(self, upstream, settings):
        settings.FINISH_REASON_REQUIRED = False
        message = await fetch_reply("eof", MESSAGES)
        assert message.response_metadata["finish_reason"] == "stop"


class Shape(BaseModel):
    text: str


@pytest.mark.parametrize("is_held", [True, False])
async def test_stream_holds_a_summary_to_a_schema_where_the_provider_can(
    upstream, settings, is_held
):
    settings.STRUCTURED_OUTPUT = is_held
    reply = await streaming.fetch_reply("ok", [HumanMessage("Hello")], schema=Shape)
    assert "Hello" in reply.text
    wanted = upstream.calls[0].body.get("response_format")
    assert (wanted and wanted["json_schema"]["name"]) == ("Shape" if is_held else None)
