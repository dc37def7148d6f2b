"""A client of the endpoint that speaks ASGI to the site, without a server."""

import asyncio
import json

from asgiref.sync import async_to_sync

from chatsite import asgi


class Call:
    """One request: what the application has answered so far, and how to hang up."""

    def __init__(
        self, path, body=b"", *, method=None, key="", host="testserver", **more
    ):
        self.method = method or ("POST" if body else "GET")
        sent = {"host": host, "content-type": "application/json"}
        if key:
            sent["authorization"] = f"Bearer {key}"
        sent |= {name.replace("_", "-"): value for name, value in more.items()}
        self.scope = {
            "type": "http",
            "method": self.method,
            "path": path,
            "scheme": "http",
            "query_string": b"",
            "client": ("127.0.0.1", 1),
            "headers": [(k.encode(), v.encode()) for k, v in sent.items()],
        }
        self.body = body
        self.status = None
        self.headers = {}
        self.chunks = []
        self.came = asyncio.Event()
        self.inbox = asyncio.Queue()

    async def receive(self):
        return await self.inbox.get()

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
            pairs = message["headers"]
            self.headers = {k.decode(): v.decode() for k, v in pairs}
        elif chunk := message.get("body"):
            self.chunks.append(chunk)
        self.came.set()

    async def run(self):
        half = len(self.body) // 2
        for part, more in ((self.body[:half], True), (self.body[half:], False)):
            message = {"type": "http.request", "body": part, "more_body": more}
            self.inbox.put_nowait(message)
        await asgi.answer_http(self.scope, self.receive, self.send)
        return self

    def hang_up(self):
        self.inbox.put_nowait({"type": "http.disconnect"})

    async def until(self, words):
        """Read until this has come."""
        while words not in b"".join(self.chunks):
            self.came.clear()
            await self.came.wait()

    @property
    def answer(self):
        return b"".join(self.chunks)


async def ask(path, body=b"", **options):
    """Status, headers and the JSON of an answer."""
    call = await Call(path, body, **options).run()
    return call.status, call.headers, json.loads(call.answer)


def send(key, *messages, headers=None, **more):
    """Send these messages to the model "ok" from a test that is not async; return the
    headers of the answer.
    """
    raw = json.dumps({"model": "ok", "messages": messages, **more}).encode()
    call = Call("/v1/chat/completions", raw, key=key, **(headers or {}))
    async_to_sync(call.run)()
    assert call.status == 200, call.answer
    return call.headers
