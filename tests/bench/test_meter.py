"""The meter of the comparison: its figures are those of `manage.py replay`."""

import asyncio

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from bench.memory.conversations import make_up
from bench.memory.meter import Meter, count_cacheable, shared_tokens, split_turns
from bench.memory.models import SUMMARY_TOKENS
from bench.memory.systems.base import System
from bench.memory.systems.langchain import AdaptiveLangChain
from bench.memory.systems.windowpane import Windowpane
from bench.memory.writers import write_extract
from chatsite.llm.demo.chat_model import DemoChatModel
from memory.engine.policy import Policy
from memory.engine.tokens import count_tokens
from memory.evaluation.replay import replay_recordings

# What the meter does not count: what a search finds, and what its notes would add.
ONLY_REPLAY = {
    *("recall_at_5", "recall_at_10", "recall_tokens_per_turn", "turns_with_recall"),
    *("cost_with_recall_per_turn", "largest_message", "largest_message_id"),
}


class Everything(System):
    """Sends the whole transcript, as a chat without a memory would."""

    def __init__(self):
        super().__init__(write_extract)
        self.messages = []

    def take_turn(self, message):
        self.messages.append(message)
        self.messages.append(self.chat.invoke(self.messages))


class Forgetful(Everything):
    """Sends the reply before, never the question."""

    def take_turn(self, message):
        self.messages = [self.chat.invoke(self.messages or [SystemMessage("Hi.")])]


async def replayed(recording, preset):
    policy = Policy(preset=preset, max_summary_tokens=SUMMARY_TOKENS)
    return (await replay_recordings([recording], policy, DemoChatModel().ainvoke))[
        "total"
    ]


class TestAgainstReplay:
    async def check(self, preset):
        recording = make_up(1, turns=90)
        expected = await replayed(recording, preset)
        meter = Meter(Windowpane(write_extract, preset=preset), recording)
        # Compaction starts an event loop of its own.
        tally = await asyncio.to_thread(meter.play)
        found = {k: v for k, v in tally.make_report().items() if k not in ONLY_REPLAY}
        assert found == {k: v for k, v in expected.items() if k not in ONLY_REPLAY}
        assert expected["rewrites_max"] > 0

    async def test_meter_counts_layers_as_replay_does(self):
        await self.check("layered")

    async def test_meter_counts_a_running_summary_as_replay_does(self):
        await self.check("langgraph")


class TestCounting:
    def test_a_chat_without_memory_loses_nothing(self):
        meter = Meter(Everything(), make_up(1, turns=30))
        report = meter.play().make_report()
        assert (report["evidence_in_window"], meter.lost) == (1.0, 0)
        assert report["blocked_turns"] == report["without_user_message"] == 0

    def test_meter_counts_unsent_questions_and_lost_messages(self):
        meter = Meter(Forgetful(), make_up(1, turns=30))
        report = meter.play().make_report()
        assert report["without_user_message"] == 30
        assert meter.lost == report["never_read"] == 59

    def test_meter_counts_a_summary_written_before_the_reply(self):
        class Blocking(Everything):
            def take_turn(self, message):
                self.summarizer.invoke([HumanMessage("Sum up."), HumanMessage("Now.")])
                super().take_turn(message)

        meter = Meter(Blocking(), make_up(1, turns=4))
        assert meter.play().blocked_turns == 4


class TestPrefix:
    def test_prefix_ends_inside_the_first_message_that_differs(self):
        old = [SystemMessage("s" * 40), HumanMessage("abcdefgh")]
        new = [SystemMessage("s" * 40), HumanMessage("abcdXfgh")]
        assert shared_tokens(old, new) == 14 + 1

    def test_short_prefix_is_not_cached(self):
        assert (
            count_cacheable(1023),
            count_cacheable(1024),
            count_cacheable(1200),
        ) == (0, 1024, 1152)


def test_a_turn_is_a_question_with_its_reply():
    messages = [
        AIMessage("hello"),
        HumanMessage("a"),
        AIMessage("b"),
        HumanMessage("c"),
    ]
    turns = [[m.text for m in turn] for turn in split_turns(messages)]
    assert turns == [["a", "b"], ["c"]]


def test_the_window_of_another_memory_can_follow_the_conversation():
    """The bench reads its size before each turn, for the window without its summary."""
    asked = []

    def find_size(window, summary_tokens):
        asked.append((len(window), summary_tokens))
        return 300

    system = AdaptiveLangChain(
        write_extract,
        find_size=find_size,
        trigger=("tokens", 1_000_000),
        keep=("tokens", 100),
        trim_tokens_to_summarize=None,
        token_counter=count_tokens,
    )
    report = Meter(system, make_up(1, turns=30)).play().make_report()
    assert 0 < report["blocked_turns"] < 30
    assert report["never_read"] == 0
    assert max(messages for messages, _ in asked) < 30
    assert {tokens > 0 for _, tokens in asked} == {False, True}
