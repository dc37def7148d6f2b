from langchain_core.messages import AIMessage

from memory.agents.shorten import clip_tool_args, clip_tool_results
from memory.engine.tokens import count_tokens

from ..engine.chats import assistant, tool, user

LONG = "x" * 3000


def call(seq, **args):
    calls = [{"name": "write_file", "args": args, "id": f"c{seq}"}]
    return AIMessage("", id=str(seq), tool_calls=calls)


def test_it_cuts_only_long_arguments():
    message = call(1, path="a.txt", text=LONG, lines=[LONG, "short"], n=5)
    (short,) = clip_tool_args([message], 2000)
    cut = "x" * 20 + "...(argument truncated)"
    args = {"path": "a.txt", "text": cut, "lines": [cut, "short"], "n": 5}
    assert short.tool_calls[0]["args"] == args
    assert message.tool_calls[0]["args"]["text"] == LONG


def test_it_leaves_everything_else_as_it_is():
    messages = [user(1, LONG), assistant(2, LONG), tool(3, "a", LONG), call(4, n=1)]
    assert all(
        a is b for a, b in zip(clip_tool_args(messages, 9), messages, strict=True)
    )


def test_it_cuts_arguments_in_content_blocks_too():
    block = {"type": "tool_use", "id": "c1", "name": "w", "input": {"text": LONG}}
    calls = [{"name": "w", "args": {"text": LONG}, "id": "c1"}]
    message = AIMessage([{"type": "text", "text": "so"}, block], tool_calls=calls)
    (short,) = clip_tool_args([message], 100)
    assert LONG not in str(short.content)
    assert short.text == "so"


def test_it_cuts_the_oldest_results_until_enough_is_saved():
    messages = [user(1), *(tool(n, f"c{n}", LONG) for n in (2, 3, 4))]
    clipped = clip_tool_results(messages, 700, count_tokens)
    assert [len(message.text) < 600 for message in clipped] == [True, True, True, False]
    assert count_tokens(messages) - count_tokens(clipped) >= 700
    assert clip_tool_results(messages, 0, count_tokens) == messages
