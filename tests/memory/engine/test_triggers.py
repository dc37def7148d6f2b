"""The triggers that look at words, a new topic and important messages, and those that
follow the length of turns."""

import pytest

from memory.engine import triggers
from memory.engine.compaction import MemoryState
from memory.engine.exceptions import PolicyError
from memory.engine.plan import plan_compaction
from memory.engine.policy import Policy
from memory.engine.search.terms import measure_term_distance
from memory.engine.tokens import count_tokens
from memory.engine.triggers import adaptive_trigger, measure_topic, measure_window

from .chats import assistant, seqs, tool, user

TRIP = [
    user(1, "We plan a trip to Kyoto in April and want to see temples."),
    assistant(2, "In April the temples of Kyoto are full. Book the trip early."),
    user(3, "Which temples in Kyoto should we see on the trip?"),
    assistant(4, "See the golden temple and the temples of Higashiyama in April."),
]
SAME = [user(5, "Is the trip to the golden temple in Kyoto long in April?")]
OTHER = [
    user(5, "My laptop crashes whenever I compile a large Rust program."),
    assistant(6, "Check the memory of your laptop with a diagnostic tool first."),
]
中文 = [
    user(1, "我们计划四月去京都旅行，想看寺庙。"),
    assistant(2, "四月的京都寺庙人很多，旅行要早点预订。"),
]
同题 = [user(3, "四月去京都旅行，寺庙要预订吗？")]
换题 = [user(3, "我的笔记本电脑编译程序时总是死机，怎么办？")]


class TestDistance:
    def test_distance_is_the_share_of_new_words(self):
        text = "temples trains hotels gardens"
        assert measure_term_distance(text, "The temple, the train.") == 0.5
        assert measure_term_distance(text, text) == 0
        assert measure_term_distance(text, "nothing of that") == 1

    @pytest.mark.parametrize("text", ["", "Yes, go on.", "ok ok ok ok ok", "👍👍👍"])
    def test_few_words_have_no_topic(self, text):
        assert measure_term_distance(text, "temples and trains") is None


class TestTopic:
    def test_new_topic_is_far(self):
        assert measure_topic([*TRIP, *SAME]) <= 0.4
        assert measure_topic([*TRIP, *OTHER]) >= 0.9

    def test_new_topic_is_far_in_chinese(self):
        assert measure_topic([*中文, *同题]) <= 0.5
        assert measure_topic([*中文, *换题]) >= 0.9

    def test_the_first_turn_is_far_from_nothing(self):
        assert measure_topic([]) is None
        assert measure_topic(TRIP[:2]) is None
        assert measure_topic([assistant(1, "Nothing was asked here so far.")]) is None

    def test_tool_results_are_not_compared(self):
        noise = "zlib malloc segfault kernel scheduler interrupt " * 9
        turn = [*SAME, assistant(6, "", calls=["a"]), tool(7, "a", noise)]
        assert measure_topic([*TRIP, *turn]) == measure_topic([*TRIP, *SAME])

    def test_topic_trigger_fires_at_its_limit(self):
        policy = Policy(trigger=("topic", 0.9), keep=("turns", 1))
        assert plan(policy, [*TRIP, *SAME]) is None
        compaction = plan(policy, [*TRIP, *OTHER])
        assert seqs(compaction.messages) == [1, 2, 3, 4]
        assert compaction.trigger.kind == "topic"
        assert compaction.trigger.value >= compaction.trigger.limit == 0.9

    def test_topic_can_be_one_condition_of_several(self):
        clause = {"topic": 0.9, "messages": 7}
        policy = Policy(trigger=clause, keep=("turns", 1))
        assert plan(policy, [*TRIP, *OTHER]) is None
        assert plan(policy, [*TRIP, *OTHER, assistant(7, "Then update it.")])

    def test_topic_cost_is_bounded(self, monkeypatch):
        read = []
        monkeypatch.setattr(
            triggers,
            "measure_term_distance",
            lambda *texts: read.append(sum(map(len, texts))),
        )
        most = triggers.TURN_CHARS + triggers.EARLIER_CHARS
        for count in (100, 1_000):
            long = [user(n, "word " * 2_000) for n in range(1, count)]
            measure_topic(long)
            # And a line break between two messages.
            assert read[-1] <= most + 10

    def test_words_are_read_only_for_a_trigger_that_needs_them(self, monkeypatch):
        monkeypatch.setattr(triggers, "measure_term_distance", None)
        monkeypatch.setattr(triggers, "PatternSearch", None)
        policy = Policy(important=["budget"])
        assert plan(policy, [*TRIP, *OTHER]) is None
        measures = measure_window(
            [*TRIP, *OTHER], count_tokens=count_tokens, policy=policy
        )
        assert (measures.topic, measures.important) == (None, 0)


class TestImportant:
    POLICY = Policy(
        trigger=("important", 2),
        keep=("messages", 2),
        important=["(?i)budget", "记住"],
        strategy="running",
    )

    def test_trigger_counts_the_matching_messages_of_the_window(self):
        window = [user(1, "My BUDGET"), assistant(2), user(3, "记住这个"), assistant(4)]
        measures = measure_window(window, count_tokens=count_tokens, policy=self.POLICY)
        assert measures.important_at == (0, 2)
        assert plan(self.POLICY, window[:3]) is None
        compaction = plan(self.POLICY, [*window, user(5)])
        assert seqs(compaction.messages) == [1, 2]
        assert compaction.trigger == triggers.TriggerHit("important", 2, 2)

    def test_kept_important_messages_trigger_nothing_again(self):
        """Otherwise every turn would bring a compaction of one turn."""
        said = [user(1), assistant(2), user(3, "budget"), assistant(4, "budget")]
        assert plan(self.POLICY, said) is None
        assert plan(self.POLICY, [*said, user(5), assistant(6)])

    def test_count_of_important_messages_restarts_after_a_summary(self):
        state = MemoryState(self.POLICY)
        made = []
        for n in range(1, 41, 2):
            important = "budget" if n % 5 == 1 else "hello"
            state = state.add_messages(user(n, important), assistant(n + 1))
            while step := state.next_step(count_tokens=count_tokens):
                made.append(seqs(step.messages))
                state = state.apply_step(step, "short")
        # Messages 1, 11, 21 and 31 are important. The newest one stays each time, and
        # counts again together with the next one.
        assert [each[-1] for each in made] == [10, 20, 30]

    def test_important_trigger_needs_patterns(self):
        with pytest.raises(PolicyError, match="trigger important: expected a pattern"):
            Policy(trigger=[("tokens", 9000), {"turns": 3, "important": 2}])

    def test_slow_patterns_have_a_time_limit(self, monkeypatch):
        monkeypatch.setattr(triggers, "SEARCH_SECONDS", 0.0)
        assert plan(self.POLICY, [user(1, "budget"), assistant(2, "budget")]) is None


@pytest.mark.parametrize(
    "trigger",
    [
        *[("topic", wrong) for wrong in (0, 1.1, -1, True, "0.5", None)],
        ("topic", float("nan")),
        *[("important", wrong) for wrong in (0, -1, 1.5, True, "2", None, 10**9)],
    ],
)
def test_wrong_trigger_values_are_named(trigger):
    with pytest.raises(PolicyError, match=f"trigger: .*{trigger[0]}.*expected"):
        Policy(trigger=trigger, important=["budget"])


@pytest.mark.parametrize("kind", ["topic", "important"])
def test_topic_and_important_are_not_kinds_of_keep(kind):
    with pytest.raises(PolicyError, match="keep: .*expected one of"):
        Policy(keep=(kind, 1), important=["budget"])


def plan(policy, window):
    return plan_compaction(policy, window, count_tokens=count_tokens)


class TestAdaptive:
    @pytest.mark.parametrize(
        ("turn", "summary", "expected"),
        # Chats of short messages, of paragraphs, of long replies, and one giant.
        [(80, 250, 4000), (300, 250, 5234), (600, 250, 6987), (9000, 400, 10_000)],
    )
    def test_the_window_grows_with_the_turns(self, turn, summary, expected):
        assert adaptive_trigger(turn, summary, 1000) == expected

    def test_adaptive_window_costs_least(self):
        """The cost of a turn, counted turn by turn, at the limit and around it."""

        def cost(limit, turn=300, summary=250, keep=1000):
            tokens, total, turns = keep, 0.0, 0
            while turns < 10_000:
                turns, tokens = turns + 1, tokens + turn
                total += triggers.CACHED_PRICE * tokens
                if tokens >= limit:
                    written = triggers.WRITTEN_PRICE * triggers.MERGED * summary
                    total += triggers.REQUEST_TOKENS + written
                    total += (1 - triggers.CACHED_PRICE) * (summary + keep)
                    tokens = keep
            return total

        best = min(map(cost, range(2000, 12_000, 100)))
        assert cost(adaptive_trigger(300, 250, 1000)) < 1.02 * best

    def test_adaptive_policy_changes_only_the_tokens_of_a_trigger(self):
        sizes = {"tokens": 4000, "messages": 4}
        policy = Policy(trigger=sizes, keep=("tokens", 1000), adaptive=True)
        window = [user(1, "x" * 4 * 9000), assistant(2), user(3), assistant(4)]
        measures = measure_window(window, count_tokens=count_tokens)
        ((tokens, messages),) = triggers.adapt_trigger(policy, measures, ()).trigger
        assert (tokens[1] > 4000, messages) == (True, ("messages", 4))
