import json
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command

from memory.engine.policy import PRESETS, Policy
from memory.evaluation.replay import (
    Player,
    RecordedConversation,
    has_number,
    read_recordings,
    replay_recordings,
)

from .engine.chats import Summarizer

START = datetime(2026, 3, 1, tzinfo=UTC)
POLICY = Policy(
    strategy="running",
    trigger=("messages", 4),
    keep=("messages", 2),
    max_summary_tokens=4000,
)


def recorded(count, text="word " * 80, qa=()):
    messages = [
        {
            "id": f"D1:{n}",
            "role": "user" if n % 2 else "assistant",
            "content": f"number{n} {text}",
            "created_at": START + timedelta(minutes=n),
        }
        for n in range(1, count + 1)
    ]
    return RecordedConversation.model_validate(
        {"id": "c1", "messages": messages, "qa": list(qa)}
    )


def asked(question, *evidence):
    return {"question": question, "evidence_ids": list(evidence)}


async def play(recording, policy=POLICY, invoke=None, **kwargs):
    return await Player(
        recording, policy, invoke or Summarizer(), **kwargs
    ).play_messages()


async def test_replay_plays_every_turn_and_never_waits_for_a_summary():
    report = (await play(recorded(20))).make_report()
    assert report["turns"] == 10
    assert report["blocked_turns"] == report["without_user_message"] == 0
    assert report["never_read"] == 0


async def test_replay_counts_how_often_a_message_was_rewritten():
    tally = await play(recorded(10))
    # Compacts of messages 1-2, 3-4, 5-6, 7-8: each rewrites all before it.
    assert tally.rewrites == [4, 4, 3, 3, 2, 2, 1, 1]


async def test_layered_replay_writes_each_segment_once():
    policy = Policy(trigger=("messages", 4), keep=("messages", 2))
    tally = await play(recorded(20), policy, Summarizer(*["short"] * 50))
    assert set(tally.rewrites) == {1}


async def test_replay_counts_a_merge_as_a_rewrite():
    sizes = {"trigger": ("messages", 4), "keep": ("messages", 2)}
    policy = Policy(**sizes, summary_budget=1, fan_in=2, cached_prefix=False)
    long = recorded(8, text="word " * 16_000)
    tally = await play(long, policy, Summarizer(*["short"] * 100))
    assert max(tally.rewrites) > 2


async def test_a_giant_read_in_parts_is_written_twice():
    policy = Policy(trigger=("messages", 4), keep=("messages", 2), cached_prefix=False)
    giant = recorded(8, text="word " * 40_000)
    tally = await play(giant, policy, Summarizer(*["short"] * 100))
    assert set(tally.rewrites) == {2}
    assert tally.never_read == 0


async def test_a_summary_read_from_the_cache_costs_less():
    recording = recorded(20, text="x" * 792)
    sizes = {"trigger": ("tokens", 2000), "keep": ("tokens", 500)}
    costs = []
    for is_on in (True, False):
        policy = Policy(**sizes, cached_prefix=is_on)
        tally = await play(recording, policy, Summarizer(*["short"] * 20))
        costs.append(tally.cost)
    assert costs[0] < 0.8 * costs[1]


async def test_replay_compacts_only_messages_that_were_read():
    refusals = Summarizer(*["I'm sorry, I can't help with that."] * 50)
    tally = await play(recorded(20), invoke=refusals)
    assert tally.rewrites == []
    assert tally.make_report()["largest_prompt"] > 20 * 80


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("count", "words"), [(160, 130), (90, 330)])
async def test_replay_loses_no_fact_with_a_perfect_summarizer(preset, count, words):
    recording = recorded(count, text="pad " * words)
    policy = Policy(preset=preset, context_window=16_000)
    player = Player(recording, policy, Summarizer())
    tally = await player.play_messages()
    known = [block.text for block in player.state.blocks]
    known += [message.text for message in player.messages[player.state.cutoff :]]
    facts = {word for text in known for word in text.split()}
    assert tally.rewrites
    assert {f"number{n}" for n in range(1, count + 1)} <= facts


@pytest.mark.parametrize("preset", PRESETS)
async def test_replay_covers_every_message_exactly_once(preset):
    player = Player(recorded(99), Policy(preset=preset), Summarizer(*["x"] * 999))
    await player.play_messages()
    covered = [
        seq
        for block in player.state.blocks
        for seq in range(block.first_seq, block.last_seq + 1)
    ]
    assert (
        covered == list(range(1, player.state.cutoff + 1)) == sorted(player.generations)
    )


async def test_replay_reports_a_message_whose_text_was_not_read():
    player = Player(recorded(10), POLICY, Summarizer())
    read = player.summarizer.text_of
    player.summarizer.text_of = lambda seq: "" if seq == 3 else read(seq)
    assert (await player.play_messages()).never_read == 1


async def test_replay_reads_a_long_message_whole():
    tally = await play(recorded(8, text="word " * 9000))
    assert tally.never_read == 0
    assert len(tally.rewrites) == 6


async def test_replay_counts_cacheable_tokens():
    never = Policy(trigger=None)
    few = await play(recorded(6, text="x" * 792), never)
    assert few.cached_tokens == 0
    many = await play(recorded(20, text="x" * 792), never)
    # Every request repeats the one before; 1024 is the least, 128 the step.
    assert many.cached_tokens % 128 == 0
    assert 0.7 < many.make_report()["cacheable_share"] < 1


async def test_replay_counts_the_cost_of_recalled_notes():
    """The notes are in the requests from the first compaction on, and are
    never cached.
    """
    chat = recorded(20, text="We talk of the zeppelin. " * 8)
    report = (await play(chat)).make_report()
    assert 0 < report["turns_with_recall"] < report["turns"]
    notes = report["recall_tokens_per_turn"] * report["turns"]
    assert 0 < notes / report["turns_with_recall"] <= POLICY.recall_tokens
    assert report["cost_with_recall_per_turn"] > report["effective_cost_per_turn"]
    without = POLICY.model_copy(update={"recall_tokens": 0})
    alone = (await play(chat, without)).make_report()
    assert alone["turns_with_recall"] == alone["recall_tokens_per_turn"] == 0
    for cost in ("effective_cost_per_turn", "cost_with_recall_per_turn"):
        assert alone[cost] == report["effective_cost_per_turn"]


async def test_replay_counts_messages_too_large_for_a_model():
    chat = recorded(8)
    chat.messages[4].content = "word " * 2_000
    chat.messages[5].content = "word " * 9_000
    report = (await play(chat, context_window=2_000)).make_report()
    assert report["refused_turns"] == 1
    assert report["largest_message_id"] == "c1 D1:5"
    assert report["largest_message"] == 2_504
    assert (await play(chat, context_window=3_000)).make_report()["refused_turns"] == 0


async def test_replay_prices_cached_and_written_tokens():
    tally = await play(recorded(8))
    tally.prompt_tokens, tally.cached_tokens = 1000, 400
    tally.summary_tokens_in, tally.summary_tokens_out = 50, 10
    assert tally.cost == 600 + 40 + 50 + 50


async def test_replay_finds_evidence_in_window_and_archive():
    qa = [
        asked("what about number1?", "D1:1"),
        asked("and number10", "D1:10"),
        asked("something else", "D1:1", "D1:9"),
        asked("not asked", "D9:9"),
        asked("nor this"),
    ]
    report = (await play(recorded(10, qa=qa))).make_report()
    assert report["evidence_in_window"] == pytest.approx(0.5)
    assert report["evidence_reachable"] == pytest.approx(0.8333, abs=1e-4)
    assert (
        report["recall_at_5"] == report["recall_at_10"] == pytest.approx(0.6667, 1e-3)
    )


@pytest.mark.parametrize(
    ("newest_id", "value", "share"),
    [("D1:3", "number3", 1), ("D1:3", "number4", 0), ("D1:9", "9", 1), ("", "", None)],
)
async def test_replay_finds_the_newest_value_in_the_request(newest_id, value, share):
    """The value is in a note of a compacted message, or in the window."""
    question = asked("what of number3 and number9?", "D1:3", "D1:9")
    question |= {"newest_id": newest_id, "newest_value": value}
    report = (await play(recorded(10, qa=[question]))).make_report()
    assert report["newest_in_request"] == share


@pytest.mark.parametrize(
    ("text", "number", "is_there"),
    [
        ("It takes 250ms.", "250", True),
        ("It takes 1250 ms, 250.5 or 2-250-3.", "250", False),
        ("At 4:30 PM.", "4:30", True),
        ("At 14:30.", "4:30", False),
        ("5-7 months, 4,700 words.", "4,700", True),
        ("4,700 words", "700", False),
    ],
)
def test_number_matches_as_a_whole(text, number, is_there):
    assert has_number(text, number) == is_there


async def test_report_has_none_without_questions():
    report = (await play(recorded(4))).make_report()
    assert report["recall_at_10"] is None


async def test_replay_measures_idle_time():
    policy = Policy(trigger=("idle", 60), keep=("messages", 2))
    assert (await play(recorded(6), policy)).rewrites
    policy = Policy(trigger=("idle", 61), keep=("messages", 2))
    assert not (await play(recorded(6), policy)).rewrites


async def test_replay_adds_conversations_up():
    report = await replay_recordings([recorded(10), recorded(6)], POLICY, Summarizer())
    assert [each["turns"] for each in report["conversations"]] == [5, 3]
    assert report["total"]["turns"] == 8
    assert "estimated" in report["tokens"]


async def test_replay_plays_an_empty_conversation():
    report = await replay_recordings([recorded(0)], POLICY, Summarizer())
    assert report["total"]["turns"] == 0
    assert report["total"]["cacheable_share"] == 0


@pytest.mark.parametrize("data", [b"", b"{}", b"[{}]", b'[{"id": 1}]', b"\xff"])
def test_reading_rejects_another_file(data):
    with pytest.raises(ValueError, match="validation error"):
        read_recordings(data)


# The command.


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "chat.json"
    qa = [asked("number1", "D1:1")]
    path.write_text(f"[{recorded(60, qa=qa).model_dump_json()}]")
    return path


def test_command_prints_json(file, capsys):
    call_command("replay", str(file), "--preset", "langgraph", "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["preset"] == "langgraph"
    assert report["total"]["turns"] == 30
    assert report["total"]["rewrites_max"] > 5
    assert report["total"]["never_read"] == 0


def test_command_plays_a_custom_policy(file, capsys):
    own = {"strategy": "window", "trigger": ["messages", 6], "keep": ["messages", 2]}
    arguments = ["--policy", json.dumps(own), "--json"]
    call_command("replay", str(file), "--preset", "langgraph", *arguments)
    report = json.loads(capsys.readouterr().out)
    assert (report["preset"], report["policy"]) == ("langgraph", own)
    # What only leaves the window is read by no summariser.
    assert report["total"]["never_read"] == 56
    assert report["total"]["rewrites_max"] == 0
    assert report["total"]["evidence_in_window"] == 0
    assert report["total"]["evidence_reachable"] == 1


@pytest.mark.parametrize(
    "own",
    [
        {"trigger": ["topic", 0.5], "keep": ["turns", 1]},
        {
            "trigger": ["important", 1],
            "important": ["number3"],
            "keep": ["messages", 2],
        },
    ],
)
def test_command_plays_the_triggers_that_read_words(tmp_path, own, capsys):
    recording = recorded(8, text="temples in Kyoto in April")
    recording.messages[4].content = "My laptop crashes when it compiles programs"
    path = tmp_path / "chat.json"
    path.write_text(f"[{recording.model_dump_json()}]")
    call_command("replay", str(path), "--json", "--policy", json.dumps(own))
    assert json.loads(capsys.readouterr().out)["total"]["rewrites_max"] > 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("{", "no JSON"),
        ("[1]", "expected an object"),
        ('{"trigger": ["topic", 2]}', "topic 2: expected a number above 0"),
        ('{"trigger": ["important", 2]}', "expected a pattern"),
        ('{"colour": "red"}', "colour: .*there is no such setting"),
    ],
)
def test_command_explains_an_invalid_policy(file, wrong, said):
    with pytest.raises(CommandError, match=f"--policy: .*{said}"):
        call_command("replay", str(file), "--policy", wrong)


def test_command_uses_the_window_of_another_model(file, capsys):
    call_command("replay", str(file), "--json", "--context-window", "50")
    report = json.loads(capsys.readouterr().out)["total"]
    assert report["refused_turns"] == report["turns"]


def test_command_prints_a_table(file, capsys):
    call_command("replay", str(file))
    printed = capsys.readouterr().out
    assert printed.startswith("Preset layered.")
    assert "prompt_tokens_per_turn" in printed


def test_command_prints_the_same_figures_twice(file, capsys):
    call_command("replay", str(file), "--json")
    first = capsys.readouterr().out
    call_command("replay", str(file), "--json")
    assert capsys.readouterr().out == first


@pytest.mark.parametrize("content", [None, "no json", '[{"id": "c", "messages": 1}]'])
def test_command_explains_an_invalid_file(tmp_path, content):
    path = tmp_path / "wrong.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CommandError, match=r"wrong\.json: .+\."):
        call_command("replay", str(path))
