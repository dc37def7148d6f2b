"""Calls of tools and their results in files and copies: out, in again, from others."""

import json

import pytest
from django.utils import timezone

from chatsite.features.importing.exporting.as_markdown import write_markdown
from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.tools.models import ToolCall
from chatsite.pages.presenters import transcript_pane
from chatsite.turns.copying import copies
from chatsite.turns.models import Turn
from memory import transcript
from tests.remembered import remembered

from ...scenes import Use, arrive, signed_in, talk_in_turns, url, use_tools
from .test_importing import as_json, chatgpt, node, refusal, take

State = ToolCall.State


@pytest.fixture
@remembered
def conversation(bob):
    """Return a conversation of Bob: calls that ended in every way, and a late result
    turns later.
    """
    made = transcript.create_conversation(bob, title="Kyoto")
    answered = {"allowed": True, "answered_at": timezone.now(), "answered_by": bob}
    use_tools(
        made,
        "What is my budget?",
        Use(columns=answered),
        Use(state="failed", result="No such page", columns={"error": "tool_error"}),
        Use(name="remind_me", state="late", result="It comes later"),
        asked="Let me look.",
    )
    talk_in_turns(made, "Meanwhile")
    arrive(ToolCall.objects.get(state="late"), "Call Mia!")
    use_tools(
        made,
        "Read it",
        Use(result="x" * 9_000, sent="x" * 100),
        Use(result=None, state="unknown"),
    )
    return made


@pytest.fixture
def file(conversation):
    return signed_in(conversation.owner).get(url("export-json", conversation)).json()


def cards(conversation):
    views = transcript_pane.show_latest_turns(conversation).items
    return [
        (card.key, card.name, card.state, card.allowed, card.took, card.is_arrival)
        + tuple((a.seq, a.text, a.sent_chars) for a in card.answers)
        for view in views
        if isinstance(view, transcript_pane.TurnView)
        for card in view.cards
    ]


class TestOwn:
    def test_a_file_brings_every_card_back(self, alice, conversation, file):
        [made] = take(alice, file).imported
        assert cards(made) == cards(conversation)
        again, now = (as_json(export_thread(each)) for each in (made, conversation))
        for row in (*again["messages"], *now["messages"]):
            for name in ("turn", "imported_at", "created_at"):
                row.pop(name, None)
        assert again["messages"] == now["messages"]

    def test_turns_end_with_their_replies(self, alice, file):
        [made] = take(alice, file).imported
        ends = made.turns.order_by("pk").values_list("state", "reply__seq")
        assert list(ends) == [("done", 6), ("done", 8), ("done", 13)]

    def test_imported_calls_can_never_run(self, alice, file):
        for state in State:
            file["conversation"]["uuid"] = f"one-{state}"
            for call in file["tool_calls"]:
                call["state"] = str(state)
            [made] = take(alice, file).imported
            found = set(made.tool_calls.values_list("state", flat=True))
            assert found.isdisjoint(ToolCall.UNFINISHED)

    def test_running_turn_is_imported_without_a_partial_reply(self, alice, bob):
        made = transcript.create_conversation(bob)
        use = Use(state="waiting", result=None)
        use_tools(made, "Mail", use, reply=None, state=Turn.State.WAITING)
        file = json.loads(json.dumps(as_json(export_thread(made))))
        [again] = take(alice, file).imported
        turn = again.turns.get()
        assert (turn.state, turn.error, turn.reply) == ("stopped", "no_reply", None)
        assert again.tool_calls.get().state == "cancelled"

    def test_a_late_result_keeps_the_turn_that_told_of_it(self, alice, conversation):
        row = conversation.messages.get(late_for=2)
        seq = transcript.reserve_numbers(conversation, 1)
        reply = transcript.append_reply(conversation, seq=seq, text="Mia waits!")
        values = {"user_message": row, "reply": reply, "reply_seq": seq}
        Turn.objects.create(
            conversation=conversation, state="done", text=reply.text, **values
        )
        file = json.loads(json.dumps(as_json(export_thread(conversation))))
        # What follows the late result there is of the turn that it began.
        file["messages"] = [m for m in file["messages"] if not 9 < m["seq"] < seq]
        file["tool_calls"] = [c for c in file["tool_calls"] if c["seq"] < 9]
        [made] = take(alice, file).imported
        last = made.turns.order_by("pk").last()
        assert (last.user_message.seq, last.reply.text) == (9, "Mia waits!")
        assert made.tool_calls.get(late_result__seq=9).state == "done"

    @pytest.mark.parametrize("change", [{"seq": 1}, {"place": 9}])
    def test_rows_of_other_calls_are_left_out(self, alice, file, change):
        file["tool_calls"][0].update(change)
        count = len(file["tool_calls"])
        take(alice, file)
        assert ToolCall.objects.filter(conversation__owner=alice).count() == count - 1

    @pytest.mark.parametrize(
        ("change", "place"),
        [
            (lambda f: f["messages"][2].update(tool_call_id="other"), "message 3"),
            (lambda f: f["messages"][1].update(tool_calls=[]), "message 3"),
            (
                lambda f: f["tool_calls"][0].update(state="great"),
                "entry 1 of its tool calls",
            ),
            (lambda f: f["messages"][2].update(sent_text="x" * 200_001), "message 3"),
        ],
    )
    def test_errors_of_calls_have_their_place(self, alice, file, change, place):
        change(file)
        assert place in refusal(alice, file)

    def test_a_result_belongs_to_one_call(self, alice, file):
        for call in file["tool_calls"]:
            call["result_seq"] = 3
        [made] = take(alice, file).imported
        assert made.tool_calls.filter(result__seq=3).count() == 1


class TestBranches:
    def test_a_branch_has_the_cards_of_what_it_copied(self, conversation):
        made = copies.branch_conversation(conversation, 6)
        assert [card[:4] for card in cards(made)] == [
            ("2-0", "search_transcript", "done", True),
            ("2-1", "search_transcript", "failed", None),
            ("2-2", "remind_me", "done", None),
        ]

    def test_late_result_of_a_branch_comes_to_the_original(self, bob):
        made = transcript.create_conversation(bob)
        use_tools(made, "Remind me", Use(state="late", result="It comes later"))
        copy = copies.branch_conversation(made, 4)
        assert copy.tool_calls.get().state == "cancelled"
        assert made.tool_calls.get().state == "late"


class TestMarkdown:
    def test_markdown_has_calls_with_their_states_and_results(self, conversation):
        text = write_markdown(conversation)
        assert "Call of **search_transcript** (Done)" in text
        assert '```json\n{\n  "query": "budget"\n}\n```' in text
        assert "Call of **remind_me** (Done)" in text
        assert "Result of **remind_me**\n\n```\nCall Mia!\n```" in text
        assert "*The model gets 100 of 9000 characters.*" in text

    def test_results_cannot_leave_their_block(self, bob):
        made = transcript.create_conversation(bob)
        use_tools(made, "Look", Use(result="````\n# Forged\n```"))
        assert "\n`````\n````\n# Forged\n```\n`````\n" in write_markdown(made)

    def test_a_masked_one_has_neither_names_nor_words(self, conversation):
        text = write_markdown(conversation, show=lambda text: "-")
        assert "search_transcript" not in text
        assert "budget" not in text


CLAUDE = {
    "uuid": "c-2",
    "name": "With tools",
    "chat_messages": [
        {"sender": "human", "content": [{"type": "text", "text": "Weather?"}]},
        {
            "sender": "assistant",
            "text": "Let me look. Sunny.",
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "t1", "name": "web", "input": {"q": "a"}},
                {"type": "tool_use", "id": "t2", "name": "web", "input": {"q": "b"}},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": [{"type": "text", "text": "B"}, {"type": "image"}],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "is_error": True,
                    "content": "No network",
                },
                {"type": "text", "text": "Sunny."},
            ],
        },
    ],
}


def rows_of(conversation):
    return [
        (row.role, row.text, [c["args"] for c in row.tool_calls], row.tool_call_id)
        for row in conversation.messages.order_by("seq")
    ]


class TestForeign:
    def test_claudes_calls_come_with_their_results(self, alice):
        [made] = take(alice, [CLAUDE]).imported
        lost = "[attachment not included in the export]"
        assert rows_of(made) == [
            ("user", "Weather?", [], ""),
            ("assistant", "Let me look.", [{"q": "a"}, {"q": "b"}], ""),
            ("tool", f"B\n\n{lost}", [], "t2"),
            ("tool", "No network", [], "t1"),
            ("assistant", "Sunny.", [], ""),
        ]
        assert [card[1:3] for card in cards(made)] == [
            ("web", "failed"),
            ("web", "done"),
        ]
        assert made.turns.get().reply.text == "Sunny."

    def test_chatgpts_tools_are_who_it_spoke_to(self, alice):
        code = {"content_type": "code", "text": "1 + 1"}
        printed = {"content_type": "execution_output", "text": "2"}
        nodes = [
            node("q", "user", "Count", None),
            node("c", "assistant", "", "q", recipient="python", content=code),
            node("r", "tool", "", "c", content=printed),
            node("r2", "tool", "and a picture", "r"),
            node("w", "assistant", '{"q": "x"}', "r2", recipient="web.run"),
            node("r3", "tool", "found", "w"),
            node(
                "o",
                "tool",
                "no one asked",
                "r3",
                author={"role": "tool", "name": "bio"},
            ),
            node("a", "assistant", "Two.", "o"),
        ]
        mapping = {each["id"]: each for each in nodes}
        [made] = take(alice, [chatgpt(mapping=mapping, current_node="a")]).imported
        assert [row[:3] for row in rows_of(made)] == [
            ("user", "Count", []),
            ("assistant", "", [{"code": "1 + 1"}]),
            ("tool", "2\n\nand a picture", []),
            ("assistant", "", [{"q": "x"}]),
            ("tool", "found\n\nno one asked", []),
            ("assistant", "Two.", []),
        ]
        assert [card[1:3] for card in cards(made)] == [
            ("python", "done"),
            ("web.run", "done"),
        ]

    def test_a_tool_that_no_one_called_gets_a_call(self, alice):
        named = {"role": "tool", "name": "dalle"}
        nodes = [
            node("q", "user", "Draw", None),
            node("r", "tool", "drawn", "q", author=named),
            node("a", "assistant", "There.", "r"),
        ]
        mapping = {each["id"]: each for each in nodes}
        [made] = take(alice, [chatgpt(mapping=mapping, current_node="a")]).imported
        assert [card[1:3] for card in cards(made)] == [("dalle", "done")]

    @pytest.mark.parametrize(
        "block",
        [
            {"type": "tool_use"},
            {"type": "tool_use", "id": 5, "name": ["x"], "input": "a\0b\ud800"},
            {
                "type": "tool_use",
                "id": "t1",
                "name": "x" * 500,
                "input": [1e305, 2**80],
            },
            {"type": "tool_result", "tool_use_id": "nobody", "content": 7},
            {"type": "tool_result", "content": [[], None, {"text": 5}]},
        ],
    )
    def test_odd_parts_are_taken_leniently(self, alice, block):
        item = json.loads(json.dumps(CLAUDE))
        item["chat_messages"][1]["content"].insert(2, block)
        [made] = take(alice, [item]).imported
        assert made.turns.get().reply.text == "Sunny."
        file = as_json(export_thread(made))
        file["conversation"]["uuid"] = "again"
        assert take(alice, file).imported
