"""The entrances: what one user can do to slow the site down for others.

Each says what the attack is; `python -m bench.neighbours NAME` tries it alone.
"""

import json
import re
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from tests.servers import ROOT

from . import texts
from .attacker import Attacker, Line

MEGABYTE = 1024 * 1024


class Entrance:
    """An attack: `hands` threads of the attacker strike repeatedly for `seconds`.

    The neighbour is not measured during the first `lead` seconds.
    """

    name: ClassVar[str]
    hands = 8
    seconds, lead = 5.0, 0.5
    env: ClassVar[dict[str, str]] = {}
    # The neighbour opens a shared page, and doesn't send a message.
    opens_link = False
    # Its work goes on when the attacker has stopped.
    lasts = False

    def environment(self, folder: Path) -> dict[str, str]:
        """Settings of the site beside those that every site here has."""
        return self.env

    def prepare(self, attacker: Attacker) -> None:
        """Set up the attacker before it begins."""

    def warm(self, attacker: Attacker) -> None:
        """Strike before it counts: work that a site does first takes longer."""
        if not self.lasts:
            for hand in range(min(self.hands, 4)):
                self.strike(attacker, hand)

    def strike(self, attacker: Attacker, hand: int) -> None:
        raise NotImplementedError


class Talk(Entrance):
    """A conversation with an open socket for each hand."""

    is_page = False

    def prepare(self, attacker: Attacker) -> None:
        self.numbers = count(1)
        self.lines = [attacker.line(is_page=self.is_page) for _ in range(self.hands)]

    def line(self, hand: int) -> Line:
        return self.lines[hand]


class Texts(Talk):
    """Messages of up to 32,000 characters in which patterns look for long, one after
    the other without waiting for replies, and summaries of them."""

    name = "slow texts"
    lasts = True
    hands = 4
    env: ClassVar = {"CONTEXT_WINDOW": "200000"}

    def strike(self, attacker: Attacker, hand: int) -> None:
        text = texts.write_slow_text(next(self.numbers))
        if self.line(hand).send(text).get("type") == "error":
            time.sleep(0.1)


class Markdown(Talk):
    """Messages of 32,000 characters of brackets, links, emphasis and tables, and
    replies like them, on open pages that are loaded again and again."""

    name = "Markdown"
    is_page = True

    def strike(self, attacker: Attacker, hand: int) -> None:
        number = next(self.numbers)
        if number % 3 == 0:
            attacker.ask(self.line(hand).path)
        elif number % 3 == 1:
            self.line(hand).send(texts.write_hostile(number))
        else:
            self.line(hand).send(f"mode=hostile:{number}|ok")


class Arguments(Talk):
    """Eight replies at once that call a tool with 60,000 characters of arguments, in
    pieces of four characters as fast as they are read."""

    name = "tool arguments"
    env: ClassVar = {"DEFAULT_TOOLS": "remind_me"}

    def strike(self, attacker: Attacker, hand: int) -> None:
        self.line(hand).say(f"mode=arguments:60000:{next(self.numbers)}|ok")


class EndlessCalls(Talk):
    """Eight replies at once that call tools without an end."""

    name = "calls without end"
    env: ClassVar = {"DEFAULT_TOOLS": "calculate"}

    def strike(self, attacker: Attacker, hand: int) -> None:
        self.line(hand).say(f"mode=calls:{next(self.numbers)}|ok")


class Replies(Talk):
    """An attack with as many concurrent replies as one user may have (64), of 50 words
    a second.
    """

    name = "64 replies at once"
    lasts = True
    hands = 64

    def strike(self, attacker: Attacker, hand: int) -> None:
        self.line(hand).say(f"mode=story:{next(self.numbers)}:300:0.02")


class McpFlood(Talk):
    """Calls of a program of an MCP server that writes a line without an end."""

    name = "flood of an MCP server"
    hands = 4
    env: ClassVar = {"DEFAULT_TOOLS": "raw_endless"}

    def environment(self, folder: Path) -> dict[str, str]:
        file = folder / "mcp.json"
        program = str(ROOT / "tests" / "fakes" / "mcp_raw.py")
        entry = {"command": sys.executable, "args": [program]}
        file.write_text(json.dumps({"mcpServers": {"raw": entry}}))
        return {**self.env, "MCP_SERVERS": str(file)}

    def strike(self, attacker: Attacker, hand: int) -> None:
        self.line(hand).say(f"mode=call:raw_endless:{next(self.numbers)}|ok")


class Reminders(Talk):
    """All reminders that one user may have (100) for the same second, and more of
    them that are refused."""

    name = "reminders"
    lasts = True
    hands = 4
    seconds, lead = 8.0, 3.0
    env: ClassVar = {"DEFAULT_TOOLS": "remind_me"}

    def strike(self, attacker: Attacker, hand: int) -> None:
        due = int(time.time()) + 4
        text = f"mode=reminders:90:{due}:{next(self.numbers)}|ok"
        self.line(hand).say(text)


class Edits(Talk):
    """Another reply, a message in other words, and what is typed weighed in the right
    pane, again and again."""

    name = "edits and drafts"

    def prepare(self, attacker: Attacker) -> None:
        super().prepare(attacker)
        self.seqs: dict[int, int] = {}

    def strike(self, attacker: Attacker, hand: int) -> None:
        line, number = self.line(hand), next(self.numbers)
        text = texts.repeat(f"word{number} ", texts.TYPED)
        if hand % 2:
            attacker.ask(f"{line.path}memory/draft/", data={"draft": text})
        elif hand in self.seqs:
            line.command("edit", seq=self.seqs[hand], client_id=f"e{number}", text=text)
            answer = line.wait("ack", "error")
            self.seqs[hand] = answer.get("seq") or self.seqs[hand]
        else:
            self.seqs[hand] = line.send(text).get("seq", 1)


class Summaries(Entrance):
    """Summaries cleared, written again, proposed and undone, of four conversations of
    100 messages, with all that pages ask about them."""

    name = "summaries"
    lasts = True
    ACTS = (
        *("memory/rebuild/", "summarise/", "memory/summarise/51/propose/"),
        *("memory/messages/3/leave-out/", "memory/messages/3/bring-back/"),
        *("context/", "memory/summaries/", "context.json"),
    )

    def prepare(self, attacker: Attacker) -> None:
        self.paths = attacker.import_talk(texts.make_talk(100, 1_200, count=4))
        self.numbers = count()

    def warm(self, attacker: Attacker) -> None:
        for _ in self.ACTS:
            self.strike(attacker, 0)

    def strike(self, attacker: Attacker, hand: int) -> None:
        act = self.ACTS[next(self.numbers) % len(self.ACTS)]
        is_read = act.startswith("context") or act.endswith(("savings/", "summaries/"))
        form: dict[str, Any] = {} if is_read else {"data": {"edited": "keep"}}
        attacker.ask(self.paths[hand % len(self.paths)] + act, **form)


class Pdfs(Entrance):
    """Small PDFs that take as long to read as one may (15 s of processor time), as many
    as one user may have waiting."""

    name = "waiting PDFs"
    lasts = True

    def prepare(self, attacker: Attacker) -> None:
        self.data = texts.make_slow_pdf()

    def strike(self, attacker: Attacker, hand: int) -> None:
        attacker.ask("/attachments/", files={"file": ("a.pdf", self.data)})


class Uploads(Entrance):
    """Files of the largest size that is read (10 MB), and such as hold as many
    characters as are kept (200,000)."""

    name = "uploads"

    def prepare(self, attacker: Attacker) -> None:
        whole = texts.repeat("All of it is text. ", 10 * MEGABYTE)
        self.files = (whole.encode(), whole[:199_000].encode())

    def strike(self, attacker: Attacker, hand: int) -> None:
        files = {"file": ("a.txt", self.files[hand % 2])}
        answer = attacker.ask("/attachments/", files=files)
        if answer is not None and answer.status_code == 201:
            attacker.ask(f"/attachments/{answer.json()['id']}/remove/", data={"a": "b"})


class Imports(Entrance):
    """A file of 48 MB with 20,000 messages, the most there may be, and the same again
    while the first is read."""

    name = "imports"
    lasts = True
    hands = 2
    seconds = 10.0

    def prepare(self, attacker: Attacker) -> None:
        self.data = texts.make_talk(19_990, 2_400)

    def strike(self, attacker: Attacker, hand: int) -> None:
        attacker.ask("/import/", files={"file": ("conversations.json", self.data)})


class Exports(Entrance):
    """All data of a user exported again and again, in every form."""

    name = "exports"
    hands = 16

    def prepare(self, attacker: Attacker) -> None:
        [path] = attacker.import_talk(texts.make_talk(500, 4_000))
        names = ("export.json", "export.md", "transcript.json")
        self.paths = [f"{path}{name}" for name in names] + ["/account/export.json"]

    def strike(self, attacker: Attacker, hand: int) -> None:
        attacker.ask(self.paths[hand % len(self.paths)])


class SharedPages(Entrance):
    """Links to 60 messages of 20,000 characters of Markdown, opened by strangers
    many times at once."""

    name = "shared pages"
    hands = 16

    def prepare(self, attacker: Attacker) -> None:
        data = texts.make_talk(60, 20_000, texts.write_hostile, count=2)
        self.links = [attacker.share(path) for path in attacker.import_talk(data)]

    def strike(self, attacker: Attacker, hand: int) -> None:
        name = ("", "messages/")[hand // 2 % 2]
        attacker.ask_as_stranger(f"{self.links[hand % 2]}{name}?after={hand + 1}")


class OtherLinks(SharedPages):
    """The attack on shared links while the neighbour waits for another shared page."""

    name = "shared pages, for another one"
    opens_link = True


class Search(Entrance):
    """Searches with eight words that are everywhere and with parts of words, in the
    list and in a conversation of 1,000 messages."""

    name = "search"
    hands = 16
    WORDS = "captain minutes harbour pier ferry tide number 7"

    def prepare(self, attacker: Attacker) -> None:
        [path] = attacker.import_talk(texts.make_talk(1_000, 500))
        self.paths = (
            f"/?q={self.WORDS}",
            f"{path}memory/find/?q={self.WORDS}",
            "/?q=ptai",
            f"{path}memory/find/?q=in+{'tes+' * 40}",
        )

    def strike(self, attacker: Attacker, hand: int) -> None:
        attacker.ask(self.paths[hand % len(self.paths)])


class Sockets(Entrance):
    """Sockets of one conversation opened, asked for all they know, and closed."""

    name = "sockets"
    hands = 16

    def prepare(self, attacker: Attacker) -> None:
        [self.path] = attacker.import_talk(texts.make_talk(200, 1_000))

    def strike(self, attacker: Attacker, hand: int) -> None:
        line = attacker.line(self.path, is_page=bool(hand % 2))
        line.command("sync")
        line.close()
        attacker.note("sockets")


class LogIns(Entrance):
    """Log-ins with wrong passwords, each of another name."""

    name = "log-ins"
    hands = 16

    def prepare(self, attacker: Attacker) -> None:
        self.numbers = count()
        page = attacker.stranger.get("/accounts/login/").text
        self.token = page.partition('csrfmiddlewaretoken" value="')[2][:64]

    def strike(self, attacker: Attacker, hand: int) -> None:
        form = {
            "csrfmiddlewaretoken": self.token,
            "username": f"no-one-{next(self.numbers)}",
            "password": "wrong",
        }
        attacker.ask_as_stranger("/accounts/login/", data=form)


class Conversations(Entrance):
    """Conversations with a first message of 32,000 characters made and deleted, as
    many as the pace allows, and the list of all of them."""

    name = "new conversations"

    def prepare(self, attacker: Attacker) -> None:
        self.numbers = count()

    def strike(self, attacker: Attacker, hand: int) -> None:
        if hand % 2:
            attacker.ask("/")
            return
        first = texts.repeat(f"word{next(self.numbers)} ", texts.TYPED)
        answer = attacker.ask("/c/", data={"first": first, "preset": "layered"})
        path = answer.headers.get("location", "") if answer is not None else ""
        if path.startswith("/c/"):
            attacker.ask(f"{path}delete/", data={"open": "no"})


class Histories(Entrance):
    """A client with a key that sends 1,000 messages with each request: in turn another
    history, and a branch in the middle of the one before."""

    name = "clients' histories"

    def prepare(self, attacker: Attacker) -> None:
        self.numbers = count(1)
        page = attacker.submit("/account/keys/", name="client", days="30")
        [key] = set(re.findall(r"wp_[\w-]{20,}", page))
        self.headers = {"Authorization": f"Bearer {key}"}

    def strike(self, attacker: Attacker, hand: int) -> None:
        number = next(self.numbers)
        said = [
            {"role": ("user", "assistant")[n % 2], "content": f"{number} {n} " * 30}
            for n in range(999)
        ]
        for length in (999, 501):
            body = {"model": "ok", "messages": said[:length]}
            content = json.dumps(body).encode()
            path = "/v1/chat/completions"
            attacker.ask(path, content=content, headers=self.headers)


ENTRANCES: dict[str, Entrance] = {
    entrance.name: entrance
    for entrance in (
        *(Texts(), Markdown(), Arguments(), EndlessCalls(), Replies(), McpFlood()),
        *(Pdfs(), Uploads(), Reminders(), Imports(), Exports()),
        *(SharedPages(), OtherLinks(), Search(), Summaries(), Edits()),
        *(Sockets(), LogIns(), Conversations(), Histories()),
    )
}


def find(names: list[str]) -> Iterator[Entrance]:
    """Yield entrances whose names begin like these; all, if none is named."""
    for name, entrance in ENTRANCES.items():
        if not names or any(name.lower().startswith(each.lower()) for each in names):
            yield entrance
