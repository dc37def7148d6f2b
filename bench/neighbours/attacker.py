"""A user who wants all of the site: many requests and sockets, and their answers."""

import json
import re
import threading
import time
import uuid
from collections import Counter
from queue import Empty, Queue
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.clients import Person

# What one answer may take, before the attacker tries something else.
PATIENCE = 15.0


class Attacker(Person):
    """`answers` counts what came back: statuses of HTTP, and kinds of events."""

    def __init__(self, site: Any, name: str) -> None:
        super().__init__(site, name)
        self.answers: Counter[str] = Counter()
        self._lock = threading.Lock()
        cookies = {each.name: each.value for each in self.cookies}
        headers = {"Referer": f"{site.url}/", "Origin": site.url}
        self.http = httpx.Client(
            base_url=site.url,
            cookies=cookies,
            headers={**headers, "X-CSRFToken": cookies["csrftoken"]},
            timeout=PATIENCE,
            limits=httpx.Limits(max_connections=None),
        )
        # Without a session, as those who only have a link.
        self.stranger = httpx.Client(
            base_url=site.url,
            headers=headers,
            timeout=PATIENCE,
            limits=httpx.Limits(max_connections=None),
        )

    def note(self, answer: str) -> None:
        with self._lock:
            self.answers[answer] += 1

    def ask(self, path: str, **form: Any) -> httpx.Response | None:
        """GET, or POST with any of data=, files=; what came, None if nothing did."""
        return self._request(self.http, path, **form)

    def ask_as_stranger(self, path: str, **form: Any) -> httpx.Response | None:
        return self._request(self.stranger, path, **form)

    def _request(
        self, client: httpx.Client, path: str, **form: Any
    ) -> httpx.Response | None:
        try:
            answer = client.request("POST" if form else "GET", path, **form)
        except httpx.HTTPError as error:
            self.note(type(error).__name__)
            return None
        self.note(f"× {answer.status_code}")
        return answer

    def line(self, path: str = "", *, is_page: bool = False) -> "Line":
        """A socket of this conversation, or of a new one."""
        return Line(self, path or self.create(), is_page=is_page)

    def import_talk(self, data: bytes) -> list[str]:
        """The paths of the conversations in the file, once all are there."""
        files = {"file": ("conversations.json", data)}
        before = set(self.paths())
        self.http.post("/import/", files=files, timeout=60)
        while "import/progress/" in self.get("/import/"):
            time.sleep(0.2)
        return [path for path in self.paths() if path not in before]

    def paths(self) -> list[str]:
        return list(dict.fromkeys(re.findall(r"/c/[0-9a-f-]{36}/", self.get("/"))))

    def share(self, path: str) -> str:
        """The path of a new link to this conversation."""
        return find_link(self.submit(f"{path}share/create/", days="7"))


def find_link(page: str) -> str:
    return re.search(r"/s/[\w-]{32}/", page)[0]


class Line:
    """A socket that is read all the time. Allows every call that waits for consent."""

    def __init__(self, owner: Attacker, path: str, *, is_page: bool = False) -> None:
        self.owner, self.path, self.is_page = owner, path, is_page
        cookies = "; ".join(f"{each.name}={each.value}" for each in owner.cookies)
        self.socket = connect(
            f"{owner.site.socket_url}/ws{path}",
            origin=owner.site.url,
            additional_headers={"Cookie": cookies},
            subprotocols=None if is_page else ["windowpane.json"],
            open_timeout=PATIENCE,
            max_size=None,
            compression=None,
            ping_interval=None,
        )
        # Events received since the last command.
        self.received: Queue[dict[str, Any]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for frame in self.socket:
                event = {"type": "fragment"} if self.is_page else json.loads(frame)
                self._hear(event)
        except ConnectionClosed as closed:
            self.owner.note(f"closed ({closed.rcvd.code if closed.rcvd else 'lost'})")

    def _hear(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        said = {
            "error": event.get("code"),
            "end": f"turns {event.get('state')}",
            "memory": f"memory {event.get('state')}",
            "tool": f"calls {event.get('state')}",
        }
        if kind in said:
            self.owner.note(str(said[kind]))
        if kind == "tool" and event["state"] == "waiting":
            answer = {"call": event["call"], "digest": event["digest"], "allow": True}
            self.command("consent", **answer)
        if kind in ("ack", "error", "end", "fragment"):
            self.received.put(event)

    def command(self, kind: str, **values: Any) -> None:
        self.socket.send(json.dumps({"type": kind, **values}))

    def send(self, text: str) -> dict[str, Any]:
        """Send a message; return the first event about it, {} if there is none."""
        self.command("send", client_id=uuid.uuid4().hex, text=text)
        return self.wait("ack", "error", "fragment")

    def say(self, text: str) -> None:
        """Send a message and wait until its reply has ended."""
        if self.send(text).get("type") == "error":
            time.sleep(0.1)
        else:
            self.wait("end", "error")

    def wait(self, *kinds: str) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while (left := end - time.monotonic()) > 0:
            try:
                event = self.received.get(timeout=left)
            except Empty:
                break
            if event["type"] in kinds:
                return event
        return {}

    def close(self) -> None:
        self.socket.close()
