"""The fake model provider of the tests, with the replies that a hostile one sends.

The newest message chooses one: "mode=arguments:60000:7". The number makes it unlike
any other; what follows a "|" answers once the call has its result.
"""

import threading
from datetime import UTC, datetime
from itertools import count
from typing import Any

from tests.fakes.calling import calling
from tests.fakes.upstream import MODES, Request, Upstream

from .texts import write_hostile

# Characters of each piece of long arguments, as tokens come.
PIECE = 4


class Newest(list[Request]):
    """The latest requests. A bench makes thousands, and each is compared with all."""

    def append(self, request: Request) -> None:
        self[:] = [*self[-3:], request]


def answer_arguments(x: Any, chars: str, _: str) -> None:
    """One call whose arguments are long and come in small pieces."""
    arguments = {"in_minutes": 5, "text": "abc " * (int(chars) // 4)}
    calling(("remind_me", arguments), split=PIECE)(x)


def answer_endless_calls(x: Any, _: str) -> None:
    """Calls until the client has had enough."""
    for number in count():
        function = {"name": "calculate", "arguments": ""}
        call = {"index": number, "id": f"call_{number}", "type": "function"}
        x.chunk({"tool_calls": [{**call, "function": function}]})


def answer_call(x: Any, name: str, _: str) -> None:
    calling((name, {}))(x)


def answer_reminders(x: Any, number: str, at: str, _: str) -> None:
    """Answer with as many reminders, all for this second."""
    due = datetime.fromtimestamp(int(at), UTC).isoformat()
    asked = [("remind_me", {"text": f"{n}", "at": due}) for n in range(int(number))]
    calling(*asked)(x)


def answer_hostile(x: Any, kind: str) -> None:
    """A long reply that is Markdown of the worst kind."""
    x.texts(write_hostile(int(kind)))
    x.end()


def main() -> None:
    MODES.update(
        arguments=answer_arguments,
        calls=answer_endless_calls,
        call=answer_call,
        reminders=answer_reminders,
        hostile=answer_hostile,
    )
    server = Upstream()
    server.requests = Newest()
    print(f"OPENAI_BASE_URL={server.url}", flush=True)
    with server:
        threading.Event().wait()


if __name__ == "__main__":
    main()
