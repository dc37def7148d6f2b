"""Short ways to write conversations and summarisers in tests of the engine."""

from datetime import UTC, datetime, timedelta

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from memory.engine.compose import SummaryBlock
from memory.engine.summaries.material import read_request

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
# What people put into `created_at`; the first five are START.
TIMES = (
    START,
    START.replace(tzinfo=None),
    START.isoformat(),
    START.timestamp(),
    int(START.timestamp()),
    *(None, "", "yesterday", b"2026", True, [], {}, object(), START.date()),
    *(float("nan"), float("inf"), 10**400, -1, "2026-13-01", "9999-12-31T23:59:59"),
    *(datetime.min, datetime.max, datetime.max.replace(tzinfo=UTC)),
)


def user(seq, text="hello", **kwargs):
    return HumanMessage(text, id=str(seq), additional_kwargs=_time(seq), **kwargs)


def assistant(seq, text="hi", calls=()):
    calls = [{"name": "search", "args": {"q": id_}, "id": id_} for id_ in calls]
    kwargs = {"id": str(seq), "additional_kwargs": _time(seq), "tool_calls": calls}
    return AIMessage(text, **kwargs)


def tool(seq, call, text="found"):
    return ToolMessage(text, tool_call_id=call, id=str(seq))


def chat(count, text="x" * 384):
    """Alternating messages 1..count of 100 tokens each, beginning with the user."""
    return [(user if n % 2 else assistant)(n, text) for n in range(1, count + 1)]


def block(version, first, last, *, level=0, tokens=400, text="facts"):
    return SummaryBlock(version, level, first, last, text, tokens)


def seqs(messages):
    return [int(message.id) for message in messages]


def _time(seq):
    return {"created_at": START + timedelta(minutes=seq)}


class Summarizer:
    """An `invoke` that answers with the given replies in turn and keeps requests.

    Without replies it is perfect: it returns every word it was shown.
    """

    def __init__(self, *replies):
        self.replies = list(replies)
        self.requests = []

    async def __call__(self, messages):
        self.requests.append(messages)
        if not self.replies:
            return AIMessage(self.repeat(read_request(messages)))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, AIMessage) else AIMessage(reply)

    @property
    def documents(self):
        return list(map(read_request, self.requests))

    def repeat(self, document):
        texts = [document.get("previous_summary", "")]
        texts += [m["text"] for m in document.get("messages", [])]
        texts += [s["text"] for s in document.get("summaries", [])]
        return " ".join(filter(None, texts))
