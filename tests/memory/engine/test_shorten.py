import json

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from memory.engine.tokens import count_tokens
from memory.engine.tools.shorten import (
    LEVELS,
    clip_tool_args,
    cut_down,
    order_turn_cuts,
)

from ..engine.chats import assistant, tool, user

LONG = "x" * 3000


def call(seq, **args):
    calls = [{"name": "write_file", "args": args, "id": f"c{seq}"}]
    return AIMessage("", id=str(seq), tool_calls=calls)


def test_long_arguments_are_cut():
    message = call(1, path="a.txt", text=LONG, lines=[LONG, "short"], n=5)
    (short,) = clip_tool_args([message], 2000)
    cut = "x" * 20 + "...(argument truncated)"
    args = {"path": "a.txt", "text": cut, "lines": [cut, "short"], "n": 5}
    assert short.tool_calls[0]["args"] == args
    assert message.tool_calls[0]["args"]["text"] == LONG


def test_other_messages_are_unchanged():
    messages = [user(1, LONG), assistant(2, LONG), tool(3, "a", LONG), call(4, n=1)]
    assert all(
        a is b for a, b in zip(clip_tool_args(messages, 9), messages, strict=True)
    )


def test_arguments_in_content_blocks_are_cut():
    block = {"type": "tool_use", "id": "c1", "name": "w", "input": {"text": LONG}}
    calls = [{"name": "w", "args": {"text": LONG}, "id": "c1"}]
    message = AIMessage([{"type": "text", "text": "so"}, block], tool_calls=calls)
    (short,) = clip_tool_args([message], 100)
    assert LONG not in str(short.content)
    assert short.text == "so"


def test_arguments_that_a_block_repeats_as_text_are_cut():
    block = {"type": "function_call", "call_id": "c1", "arguments": "{}"}
    calls = [{"name": "w", "args": {"text": LONG}, "id": "c1"}]
    (short,) = clip_tool_args([AIMessage([block], tool_calls=calls)], 100)
    assert json.loads(short.content[0]["arguments"]) == short.tool_calls[0]["args"]


def cut(messages, saved, **options):
    places = {id(message): int(message.id) for message in messages}
    order = order_turn_cuts(messages, **options)
    shown, _ = cut_down(messages, saved, count_tokens, places, order)
    assert len(shown) == len(messages)
    return shown


def changed(messages, shown):
    pairs = zip(messages, shown, strict=True)
    return [int(old.id) for old, new in pairs if old is not new]


def rounds(text=LONG, count=3):
    """The question, then for each round a message with a call, and its result."""
    messages = [user(1, LONG)]
    for seq in range(2, 2 * count + 2, 2):
        messages += [call(seq, text=text), tool(seq + 1, f"c{seq}", LONG)]
        messages[-2].content = LONG
    return messages


def test_messages_with_enough_room_are_unchanged():
    messages = rounds()
    assert changed(messages, cut(messages, 0)) == []


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        (100, [3]),
        (1000, [3, 5]),
        (1400, [3, 5]),
        (1500, [3, 5, 7]),
        (2800, [2, 3, 4, 5, 7]),
        (4500, [2, 3, 4, 5, 7]),
    ],
)
def test_cuts_are_old_results_then_arguments_then_words(saved, expected):
    messages = rounds()
    shown = cut(messages, saved)
    assert changed(messages, shown) == expected
    assert count_tokens(messages) - count_tokens(shown) >= saved
    assert shown[0] is messages[0]
    assert messages[1].tool_calls[0]["args"]["text"] == LONG


def test_newest_round_is_cut_completely_only_on_request():
    messages = rounds()
    assert len(cut(messages, 10_000)[-1].text) > 500
    assert cut(messages, 10_000)[-2] is messages[-2]
    shown = cut(messages, 10_000, newest=LEVELS)
    assert changed(messages, shown) == [2, 3, 4, 5, 6, 7]
    assert shown[-1].text.startswith("...(3,000 characters are left out")


def test_cut_text_names_the_omitted_length_and_the_message():
    messages = [call(2, text="short"), tool(3, "c2", LONG), call(4), tool(5, "c4", "")]
    shown = cut(messages, 100)
    mark = "...(1,000 of 3,000 characters are left out; the whole is message 3 of this"
    assert shown[1].text == "x" * 2000 + mark + " thread)"


def test_many_short_arguments_are_cut_as_one():
    messages = [call(2, numbers=list(range(2000))), call(4), tool(5, "c4", "")]
    args = cut(messages, 2000)[0].tool_calls[0]["args"]
    assert list(args) == ["left_out"]
    assert args["left_out"].endswith("the whole is message 2 of this thread)")


def test_cuts_make_no_text_longer():
    messages = [user(1), *(tool(n, "c", "x" * 50) for n in range(2, 9)), call(9)]
    assert changed(messages, cut(messages, 10_000)) == []


def test_pictures_and_call_blocks_are_kept():
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    used = {"type": "tool_use", "id": "c2", "name": "w", "input": {}}
    found = ToolMessage(
        [picture, LONG, {"type": "text", "text": LONG}], id="3", tool_call_id="c2"
    )
    said = AIMessage(
        [{"type": "text", "text": LONG}, used], id="2", tool_calls=call(2).tool_calls
    )
    shown = cut([said, found, call(4), tool(5, "c4", "")], 10_000)
    assert shown[0].content[1] == used
    assert shown[1].content[0] == picture
    assert [len(each.content) for each in shown[:2]] == [2, 2]
    assert shown[1].text == (
        "...(6,000 characters are left out; the whole is message 3 of this thread)"
    )
