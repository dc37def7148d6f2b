import uuid
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage, ToolMessage

from memory.engine.cut_points import (
    find_cut_points,
    find_gaps,
    find_open_question,
)
from memory.engine.plan import find_cutoff, number_window, plan_compaction, plan_merge
from memory.engine.policy import Policy
from memory.engine.tokens import count_tokens
from memory.engine.triggers import (
    TriggerHit,
    find_next_due,
    find_trigger,
    measure_window,
)

from .chats import START, TIMES, assistant, block, chat, seqs, tool, user


def plan(policy, messages, blocks=(), count_tokens=count_tokens, **kwargs):
    return plan_compaction(
        policy, messages, blocks, count_tokens=count_tokens, **kwargs
    )


def cutoff(messages, kind, amount, **kwargs):
    keep = (kind, amount)
    return find_cutoff(messages, keep, **{"count_tokens": count_tokens} | kwargs)


def messages_policy(trigger, keep=("messages", 2), **kwargs):
    return Policy(strategy="running", trigger=trigger, keep=keep, **kwargs)


# When to compact.


@pytest.mark.parametrize("trigger", [None, ("messages", 7), ("tokens", 601)])
def test_plan_compacts_nothing_below_the_trigger(trigger):
    assert plan(messages_policy(trigger), chat(6)) is None


@pytest.mark.parametrize("trigger", [("messages", 6), ("tokens", 600), ("turns", 3)])
def test_plan_compacts_as_soon_as_the_trigger_is_reached(trigger):
    compaction = plan(messages_policy(trigger), chat(6))
    kind, limit = trigger
    assert compaction.trigger == TriggerHit(kind, limit, limit)
    assert seqs(compaction.messages) == [1, 2, 3, 4]
    assert seqs(compaction.kept) == [5, 6]


@pytest.mark.parametrize("count", [0, 1, 2, 6, 7, 8, 20])
def test_langgraph_preset_compacts_like_the_tutorial(count):
    compaction = plan(Policy(preset="langgraph"), chat(count))
    assert (compaction is not None) == (count > 6)
    if compaction:
        assert len(compaction.kept) in (2, 3)


def test_trigger_needs_all_conditions_of_a_dict():
    both = messages_policy({"tokens": 600, "messages": 6})
    assert plan(both, chat(6, text="short")) is None
    assert plan(both, chat(5, text="x" * 1000)) is None
    assert plan(both, chat(6))


def test_trigger_needs_one_item_of_a_list():
    either = messages_policy([{"tokens": 600, "messages": 100}, ("turns", 4)])
    assert plan(either, chat(6)) is None
    assert plan(either, chat(8)).trigger.kind == "turns"
    assert plan(messages_policy([("turns", 9), ("tokens", 500)]), chat(6))


def test_disabled_policy_plans_no_compaction():
    policy = messages_policy(("messages", 6), enabled=False)
    assert plan(policy, chat(20)) is None
    assert plan(policy, chat(20), force=True) is None


def test_trigger_measures_age_and_idle_time():
    now = START + timedelta(minutes=10)
    measures = measure_window(chat(4), count_tokens=count_tokens, now=now)
    assert (measures.age, measures.idle) == (540, 360)
    assert find_trigger(Policy(trigger=("age", 540)), measures).value == 540
    assert find_trigger(Policy(trigger=("idle", 361)), measures) is None


def test_trigger_ignores_age_when_times_are_unknown():
    measures = measure_window([HumanMessage("hello")], count_tokens=count_tokens)
    assert measures.age is None
    assert find_trigger(Policy(trigger=("age", 1)), measures) is None


@pytest.mark.parametrize(("fraction", "fires"), [(0.81, False), (0.80, True)])
def test_trigger_measures_a_fraction_of_the_context_window(fraction, fires):
    policy = messages_policy(("fraction", fraction))
    messages = chat(4, text="x" * 784)
    assert bool(plan(policy, messages, context_window=1000)) == fires


def test_fraction_includes_the_system_prompt():
    policy = messages_policy(("fraction", 0.8))
    assert plan(policy, chat(4), context_window=1000) is None
    assert plan(policy, chat(4), context_window=1000, overhead=400)


def test_fraction_never_fires_without_a_context_window():
    policy = messages_policy([("fraction", 0.1), ("messages", 8)])
    assert plan(policy, chat(6)) is None
    assert plan(policy, chat(8)).trigger.kind == "messages"


def test_context_window_of_the_policy_comes_first():
    policy = messages_policy(("fraction", 0.5), context_window=500)
    assert plan(policy, chat(4), context_window=1_000_000)


def test_large_system_prompt_does_not_compact_every_turn():
    policy = messages_policy(("tokens", 600))
    assert plan(policy, chat(4), overhead=5000) is None


def test_chinese_text_triggers_at_its_real_size():
    messages = chat(4, text="我" * 1400)
    assert plan(Policy(adaptive=False), messages).trigger.value >= 4000


def test_adaptive_trigger_follows_the_turns():
    messages = chat(30)
    assert plan(Policy(trigger=("tokens", 9000)), messages) is None
    compaction = plan(Policy(), chat(120))
    assert 4000 <= compaction.trigger.limit <= 10_000
    # 10 turns of 1,000 tokens: a limit of 4,000 would be reached every third turn.
    long_replies = chat(18, text="x" * 4 * 496)
    assert plan(Policy(), long_replies) is None
    assert plan(Policy(adaptive=False), long_replies)


def test_compaction_leaves_none_due():
    policy = messages_policy(("messages", 6))
    compaction = plan(policy, chat(9))
    summary = block(1, compaction.first_seq, compaction.last_seq)
    assert plan(policy, list(compaction.kept), [summary]) is None


def test_each_message_is_compacted_once_in_three_rounds():
    policy = Policy(trigger=("messages", 8), keep=("messages", 2))
    blocks, spans, window = [], [], []
    for message in chat(20):
        window.append(message)
        if compaction := plan(policy, window, blocks):
            spans.append((compaction.first_seq, compaction.last_seq))
            blocks.append(block(len(spans), *spans[-1]))
            window = list(compaction.kept)
    assert spans == [(1, 6), (7, 12), (13, 18)]
    assert seqs(window) == [19, 20]


def test_plan_waits_until_a_batch_of_turns_leaves_the_window():
    policy = Policy(preset="guide", batch=4)
    assert plan(policy, chat(2 * 13)) is None
    assert seqs(plan(policy, chat(2 * 14)).messages) == list(range(1, 9))
    assert plan(policy, chat(2 * 12), force=True)


@pytest.mark.parametrize(("reported", "fires"), [(10_001, True), (9_999, False)])
def test_provider_count_is_used_when_larger(reported, fires):
    policy = messages_policy(("tokens", 10_000))
    assert bool(plan(policy, chat(6), reported=reported)) == fires
    assert not plan(policy, chat(6), reported=reported, overhead=5000)


def test_fraction_of_zero_is_one_token():
    assert cutoff(chat(6), "fraction", 0.0001, context_window=100) == 4


def test_plan_accepts_a_count_of_zero():
    assert cutoff(chat(6), "tokens", 1, count_tokens=lambda messages: 0) == 0
    assert plan(Policy(), chat(6), count_tokens=lambda messages: 0) is None


# Where to cut.


@pytest.mark.parametrize(
    ("kind", "amount", "expected"),
    [
        ("messages", 1, 4),
        ("messages", 2, 4),
        ("messages", 3, 2),
        ("messages", 6, 0),
        ("messages", 99, 0),
        ("turns", 1, 4),
        ("turns", 2, 2),
        ("turns", 3, 0),
        ("tokens", 600, 0),
        ("tokens", 599, 2),
        ("tokens", 399, 4),
        ("tokens", 1, 4),
        ("fraction", 0.4, 2),
        ("fraction", 0.001, 4),
    ],
)
def test_cutoff_is_between_whole_turns(kind, amount, expected):
    assert cutoff(chat(6), kind, amount, context_window=1000) == expected


@pytest.mark.parametrize(("fraction", "kept"), [(0.5, 2), (0.6, 3), (0.8, 4)])
def test_cutoff_keeps_what_fits_the_fraction(fraction, kept):
    messages = [user(n, "x" * 784) for n in range(1, 5)]
    cut = cutoff(messages, "fraction", fraction, context_window=1000)
    assert len(messages) - cut == kept


def test_cutoff_keeps_the_newest_turn_without_a_context_window():
    assert cutoff(chat(6), "fraction", 0.5) == 4


@pytest.mark.parametrize("kind", ["messages", "turns", "tokens"])
def test_empty_or_single_turn_is_not_cut(kind):
    assert cutoff([], kind, 1) == 0
    assert cutoff([user(1, "x" * 9000)], kind, 1) == 0
    assert cutoff([assistant(1), assistant(2)], kind, 1) == 0


def test_cutoff_keeps_a_tool_loop_with_its_question():
    messages = [*chat(2), user(3, "now?"), assistant(4, calls=["a"]), tool(5, "a")]
    assert cutoff(messages, "tokens", 1) == 2
    assert cutoff(messages, "messages", 1) == 2


def test_cutoff_keeps_parallel_tool_results_together():
    ids = [f"call{n}" for n in range(10)]
    results = [tool(3 + n, id_) for n, id_ in enumerate(ids)]
    messages = [user(1), assistant(2, calls=ids), *results, assistant(13)]
    assert cutoff([*messages, user(14)], "messages", 4) == 0
    assert cutoff([*messages, user(14)], "messages", 1) == 13


def test_cutoff_keeps_a_call_with_its_delayed_result():
    messages = [
        user(1),
        assistant(2, calls=["a", "b"]),
        tool(3, "a"),
        user(4, "are you done?"),
        tool(5, "b"),
        assistant(6),
        user(7),
    ]
    assert cutoff(messages, "messages", 2) == 0
    assert cutoff(messages, "tokens", 1) == 6


def test_cutoff_separates_calls_that_reuse_an_id():
    turns = [
        [user(n), assistant(n + 1, calls=["call_0"]), tool(n + 2, "call_0")]
        for n in (1, 4, 7)
    ]
    assert cutoff(sum(turns, []), "turns", 1) == 6
    assert cutoff(sum(turns, []), "turns", 2) == 3


def test_result_without_a_call_is_ignored():
    messages = [user(1), tool(2, "lost"), user(3), tool(4, "lost"), user(5)]
    assert cutoff(messages, "turns", 1) == 4


def test_cutoff_is_before_a_user_message():
    messages = [assistant(1), assistant(2), *(m for m in chat(8)[2:])]
    for amount in range(1, 9):
        cut = cutoff(messages, "messages", amount)
        assert cut == 0 or isinstance(messages[cut], HumanMessage)


def test_tokens_are_counted_a_logarithmic_number_of_times():
    calls = []

    def counting(messages):
        calls.append(1)
        return len(messages)

    assert cutoff(chat(4000), "tokens", 100, count_tokens=counting) == 3900
    assert len(calls) <= 14


# What a compaction holds.


def test_compaction_extends_the_running_summary():
    previous = block(3, 1, 10)
    window = [user(n) if n % 2 else assistant(n) for n in range(11, 19)]
    compaction = plan(messages_policy(("messages", 7)), window, [previous])
    assert compaction.previous == previous
    assert (compaction.first_seq, compaction.last_seq) == (1, 16)
    assert seqs(compaction.messages) == [11, 12, 13, 14, 15, 16]


def test_compaction_extends_the_summary_of_topics():
    previous = block(3, 1, 10)
    policy = Policy(preset="topics", trigger=("messages", 6), keep=("messages", 2))
    window = [user(n) if n % 2 else assistant(n) for n in range(11, 19)]
    assert plan(policy, window, [previous]).previous == previous
    assert plan_merge(policy, [previous, block(4, 11, 12, tokens=9000)]) is None


def test_layered_compaction_starts_a_new_summary():
    policy = Policy(trigger=("messages", 6), keep=("messages", 2))
    window = [user(13), assistant(14), user(15), assistant(16), user(19), user(20)]
    compaction = plan(policy, window, [block(1, 1, 10)])
    assert (compaction.previous, compaction.level) == (None, 0)
    # 11, 12, 17 and 18 are excluded; the ranges of summaries tile all the same.
    assert (compaction.first_seq, compaction.last_seq) == (11, 18)


def test_plan_is_deterministic():
    policy = messages_policy(("messages", 6))
    assert plan(policy, chat(9)) == plan(policy, chat(9))


def test_forced_compaction_is_immediate():
    compaction = plan(Policy(), chat(6), force=True)
    assert compaction.trigger == TriggerHit("manual", 600, 0)
    assert seqs(compaction.kept) == [5, 6]
    assert plan(Policy(), chat(2), force=True) is None


@pytest.mark.parametrize("count", [4, 18, 20, 38])
def test_manual_compaction_needs_no_trigger(count):
    # Deep Agents lets a model compaction from half of its trigger on. Here no model can
    # ask for a compaction, and a user who does has a reason.
    assert plan(Policy(), chat(count)) is None
    assert seqs(plan(Policy(), chat(count), force=True).messages)


@given(
    st.lists(st.sampled_from("uat"), max_size=30),
    st.sampled_from(["messages", "turns", "tokens"]),
    st.integers(1, 40),
)
def test_compaction_covers_every_message_and_keeps_tool_pairs(roles, kind, amount):
    messages = _random_chat(roles)
    cut = find_cutoff(messages, (kind, amount), count_tokens=len)
    compacted, kept = messages[:cut], messages[cut:]
    assert compacted + kept == messages
    called = {c["id"] for m in compacted for c in getattr(m, "tool_calls", [])}
    assert not called & {m.tool_call_id for m in kept if isinstance(m, ToolMessage)}
    if cut:
        assert isinstance(kept[0], HumanMessage)


def _random_chat(roles):
    open_calls, messages = [], []
    for seq, role in enumerate(roles, start=1):
        if role == "a":
            open_calls.append(f"c{seq}")
            messages.append(assistant(seq, calls=open_calls[-1:]))
        elif role == "t" and open_calls:
            messages.append(tool(seq, open_calls.pop()))
        else:
            messages.append(user(seq))
    return messages


# When summaries are merged.


def blocks_of(*levels, tokens=400):
    return [
        block(n, n * 10 + 1, n * 10 + 10, level=level, tokens=tokens)
        for n, level in enumerate(levels)
    ]


@pytest.mark.parametrize(
    ("levels", "merged", "level"),
    [
        ((0, 0, 0, 0), None, None),
        ((0, 0, 0, 0, 0), [0, 1, 2, 3, 4], 1),
        ((0, 0, 0, 0, 0, 0), [0, 1, 2, 3, 4], 1),
        ((1, 0, 0, 0, 0), None, None),
        ((1, 1, 1, 1, 1, 0), [0, 1, 2, 3, 4], 2),
        ((1, 1, 1, 1, 1, 0, 0, 0, 0, 0), [5, 6, 7, 8, 9], 1),
        ((4, 3, 2, 1, 0), None, None),
        ((0, 0, 1, 0, 0, 0), None, None),
    ],
)
def test_merge_takes_fan_in_neighbours_of_one_level(levels, merged, level):
    merge = plan_merge(Policy(), blocks_of(*levels))
    assert (merge and [b.version for b in merge.replaces]) == merged
    assert (merge and merge.level) == level


def test_merge_takes_no_more_than_fan_in():
    merge = plan_merge(Policy(fan_in=3), blocks_of(1, 0, 0, 0, 0))
    assert [b.version for b in merge.replaces] == [1, 2, 3]


def test_summaries_within_the_budget_are_not_merged():
    assert plan_merge(Policy(), blocks_of(0, 0, 0, 0, 0, tokens=320)) is None


def test_merge_has_its_trigger():
    merge = plan_merge(Policy(), blocks_of(0, 0, 0, 0, 0))
    assert merge.trigger == TriggerHit("summary_tokens", 2000, 1600)


def test_single_or_running_summary_is_never_merged():
    assert plan_merge(Policy(), blocks_of(0, tokens=9000)) is None
    assert plan_merge(Policy(preset="langgraph"), blocks_of(0, 0, 0, 0, 0)) is None


@pytest.mark.parametrize("tokens", [400, 1500])
def test_facts_are_rewritten_a_logarithmic_number_of_times(tokens):
    """Even when the summariser shortens nothing."""
    rewrites = {}
    blocks = []
    for n in range(1, 201):
        blocks.append(block(n, n, n, tokens=tokens))
        rewrites[n] = 1
        while merge := plan_merge(Policy(), blocks):
            first, last = merge.replaces[0].first_seq, merge.replaces[-1].last_seq
            for fact in range(first, last + 1):
                rewrites[fact] += 1
            start = blocks.index(merge.replaces[0])
            merged = block(1000 + n, first, last, level=merge.level, tokens=tokens)
            blocks[start : start + len(merge.replaces)] = [merged]
    assert max(rewrites.values()) <= 4  # 1 + log5(200)
    assert len(blocks) <= 4 * 4


# Inside a turn.


def rounds(count, *, at_once=1):
    """A question, then rounds of a call (2, 4, ...) and its result (3, 5, ...)."""
    messages = [user(1)]
    for n in range(count):
        ids = [f"c{n}.{m}" for m in range(at_once)]
        messages.append(assistant(len(messages) + 1, "", calls=ids))
        for id_ in ids:
            messages.append(tool(len(messages) + 1, id_, "x" * 400))
    return messages


@pytest.mark.parametrize(
    ("at_once", "expected"), [(1, [0, 3, 5, 7]), (2, [0, 4, 7, 10])]
)
def test_cutoff_may_follow_each_round_of_the_newest_turn(at_once, expected):
    messages = rounds(4, at_once=at_once)
    assert find_cut_points(messages, rounds=True) == expected
    assert find_cut_points(messages) == [0]


def test_older_turns_are_cut_as_a_whole():
    messages = [*rounds(3), assistant(8), user(9)]
    assert find_cut_points(messages, rounds=True) == [0, 8]


def test_rounds_are_not_divided():
    late = [*rounds(1), assistant(4, calls=["d"]), *rounds(1)[1:], tool(7, "d")]
    assert find_cut_points(late, rounds=True) == [0, 3]
    early = [user(1), tool(2, "a"), assistant(3, calls=["a"]), assistant(4)]
    assert find_cut_points(early, rounds=True) == [0]
    parallel = [user(1), assistant(2, calls=["a", "b"]), tool(3, "b"), tool(4, "a")]
    assert find_cut_points(parallel, rounds=True) == [0]
    assert find_cut_points([*parallel, assistant(5)], rounds=True) == [0, 4]


def test_turn_with_a_summarised_question_is_cut():
    assert find_cut_points(rounds(3)[3:], rounds=True) == [2]


def test_turn_is_compacted_inside_only_with_rounds():
    policy = messages_policy(("messages", 6), keep=("messages", 3), batch=3)
    assert plan(policy, rounds(4)) is None
    compaction = plan(policy, rounds(4), rounds=True)
    assert seqs(compaction.kept) == [6, 7, 8, 9]
    assert (compaction.first_seq, compaction.last_seq) == (1, 5)


def test_newest_round_is_kept_without_room():
    compaction = plan(Policy(), rounds(4), room=50, rounds=True)
    assert compaction.trigger.kind == "room"
    assert seqs(compaction.kept) == [8, 9]
    assert plan(Policy(), rounds(1), room=50, rounds=True) is None


# Messages of any origin.


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["4", "5", "9"], [4, 5, 9]),
        ([None, None, None], [4, 5, 6]),
        (["a", "b", "c"], [4, 5, 6]),
        (["4", "b", None], [4, 5, 6]),
        (["5", "5", "5"], [4, 5, 6]),
        (["1", "2", "3"], [4, 5, 6]),
        (["6", "5", "4"], [4, 5, 6]),
        (["9" * 30, "\u00b2", "-4"], [4, 5, 6]),
    ],
)
def test_messages_are_numbered_by_id_or_else_by_place(ids, expected):
    assert (
        number_window([HumanMessage("a", id=id_) for id_ in ids], after=3) == expected
    )


@pytest.mark.parametrize("make_id", [lambda n: None, lambda n: str(uuid.uuid4())])
def test_messages_of_any_origin_are_compacted(make_id):
    messages = [each.model_copy(update={"id": make_id(0)}) for each in chat(10)]
    policy = messages_policy(("messages", 6))
    compaction = plan(policy, messages[4:], [block(1, 1, 4)])
    assert (compaction.first_seq, compaction.last_seq) == (1, 8)
    assert list(compaction.messages) == messages[4:8]
    assert list(compaction.kept) == messages[8:]


@pytest.mark.parametrize("value", TIMES)
@pytest.mark.parametrize("kind", ["age", "idle"])
def test_odd_message_times_do_not_stop_a_compaction(value, kind):
    messages = chat(6)
    for message in messages:
        message.additional_kwargs["created_at"] = value
    policy = messages_policy([("messages", 6), (kind, 60)])
    assert plan(policy, messages).last_seq == 4
    find_next_due(policy, messages, now=START)


def test_gaps_are_between_all_messages_except_inside_a_call():
    window = [user(1), assistant(2, calls=["a", "b"]), tool(3, "a"), tool(4, "b")]
    assert find_gaps([*window, assistant(5), user(6)]) == [0, 1, 4, 5]
    early = [user(1), tool(2, "x"), user(3), assistant(4, calls=["x"]), user(5)]
    assert find_gaps(early) == [0, 1, 4]
    assert find_gaps([]) == []


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        ([], 2),
        ([assistant(4, calls=["a"])], 2),
        ([assistant(4, calls=["a"]), tool(5, "a")], 2),
        ([assistant(4)], -1),
    ],
)
def test_question_is_open_until_the_model_answers_in_words(behind, expected):
    assert find_open_question([*chat(2), user(3), *behind]) == expected
    assert find_open_question(behind) == -1
