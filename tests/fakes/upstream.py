"""An OpenAI-compatible server on loopback that answers well or badly, as asked.

The mode is the model's name ("ok", "hang", "ok-slow:50:0.02"), the next entry of a
script, or what the newest message asks for ("mode=story:7:50:0.02"). Every request is
recorded: what really was sent is the truth of many tests.
Runs inside the tests (`with Upstream() as server`) or by hand:
`python -m tests.fakes.upstream --port 9100`.
"""

import argparse
import json
import re
import select
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from ..patience import PATIENCE
from . import markdown, openai_rules, wires
from .held_threads import HeldState
from .provider_rules import Provider

SUMMARY_MARK = "[windowpane:summarise]"
# A message that begins with this chooses how it is answered, among many at once.
MODE_MARK = "mode="
A_LONG_TIME = 3600.0
CREATED = 1_700_000_000


class ClientGoneError(Exception):
    """The client closed the connection before the answer was complete."""


@dataclass(frozen=True)
class Request:
    """One recorded request: headers with lower-case names, the decoded body."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float = field(default_factory=time.monotonic)
    raw: bytes = b""
    # The body of the answer, as far as it was sent.
    answered: bytearray = field(default_factory=bytearray)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body.get("messages", [])


class Upstream:
    """The server. .url is the base URL, .requests everything that was asked."""

    # Whether it refuses what OpenAI would refuse.
    is_strict = True
    # Whose rules and answers it has; None: OpenAI's rules, and modes.
    provider: "Provider | None" = None
    # What it holds of the conversations of other APIs; None: nothing.
    held: "HeldState | None" = None

    def __init__(self, port: int = 0) -> None:
        self.requests: list[Request] = []
        # What OpenAI would have refused: calls without results, and such.
        self.violations: list[str] = []
        self.closed_early = 0
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.holding = threading.Event()
        self._script: deque[str | Answer] = deque()
        self._wishes: Counter[str] = Counter()
        self._server = HTTPServer(("127.0.0.1", port), Handler)
        self._server.upstream = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def calls(self) -> list[Request]:
        """The requests for a reply or a summary."""
        return [r for r in self.requests if is_chat(r.path)]

    def script(self, *modes: "str | Answer") -> None:
        """Answer the next requests in these modes, whatever their model's name; or with
        these functions, such as calling() makes."""
        self._script.extend(modes)

    def next_mode(self, body: dict[str, Any]) -> "str | Answer":
        wish = find_wish(body)
        with self.lock:
            if wish:
                self._wishes[wish] += 1
                return choose(wish, self._wishes[wish])
            return self._script.popleft() if self._script else str(body.get("model"))

    @contextmanager
    def unfinished(self) -> Iterator[None]:
        """Keep replies from ending: their texts come at once, their ends afterwards."""
        self.holding.set()
        try:
            yield
        finally:
            self.holding.clear()

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def wait_closed_early(self, count: int = 1, seconds: float = 10.0) -> bool:
        """Wait until `count` clients have hung up early; return whether they have."""
        end = time.monotonic() + seconds * PATIENCE
        while self.closed_early < count and time.monotonic() < end:
            time.sleep(0.01)
        return self.closed_early >= count

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()


class HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    # Many replies may begin in the same moment.
    request_queue_size = 256


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def upstream(self) -> Upstream:
        return self.server.upstream

    def log_message(self, *args: object) -> None:
        """Quiet: the tests look at .requests."""

    def do_GET(self) -> None:
        request = self._record(b"{}")
        models = [{"id": name, "object": "model"} for name in sorted(MODES)]
        exchange = Exchange(self, {}, request.answered)
        exchange.send_json({"object": "list", "data": models})

    def do_DELETE(self) -> None:
        request = self._record(b"{}")
        self.upstream.held.delete(Exchange(self, {}, request.answered))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = self._record(raw)
        answer, args = self._find_answer(request.body)
        try:
            answer(Exchange(self, request.body, request.answered), *args)
        except (ClientGoneError, BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            with self.upstream.lock:
                self.upstream.closed_early += 1

    def _find_answer(self, body: dict[str, Any]) -> "tuple[Answer, list[str]]":
        in_chat = is_chat(self.path)
        if in_chat and self.upstream.provider:
            return self.upstream.provider.answer, []
        is_judged = in_chat and self.upstream.is_strict
        if is_judged and (found := openai_rules.find_violations(body)):
            with self.upstream.lock:
                self.upstream.violations += found
            return answer_status(400, "; ".join(found)), []
        if not in_chat and self.upstream.held:
            return self.upstream.held.answer, []
        wanted = self.upstream.next_mode(body)
        if callable(wanted):
            return wanted, []
        if not in_chat:
            return answer_in_wire, []
        mode, *args = wanted.split(":")
        return MODES.get(mode, answer_ok), args

    def _record(self, raw: bytes) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, json.loads(raw), raw=raw)
        with self.upstream.lock:
            self.upstream.requests.append(request)
        return request


def is_chat(path: str) -> bool:
    return path.partition("?")[0].endswith("/chat/completions")


class Exchange:
    """One request being answered, piece by piece."""

    def __init__(
        self, handler: Handler, body: dict[str, Any], answered: bytearray | None = None
    ) -> None:
        self.handler = handler
        self.answered = bytearray() if answered is None else answered
        self.body = body
        self.is_stream = bool(body.get("stream"))
        self.sent = ""
        self.is_open = False

    def open(
        self, status: int = 200, kind: str = "text/event-stream", **headers: str
    ) -> None:
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", kind)
        self.handler.send_header("Connection", "close")
        self.handler.send_header("Transfer-Encoding", "chunked")
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.is_open = True

    def write(self, data: bytes) -> None:
        if not self.is_open:
            self.open()
        self.answered += data
        self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.handler.wfile.flush()

    def close(self) -> None:
        """The regular end of the body."""
        if not self.is_open:
            self.open()
        self.handler.wfile.write(b"0\r\n\r\n")
        self.handler.close_connection = True

    def wait(self, seconds: float) -> None:
        """Sleep, but notice at once when the client hangs up or the server stops."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.handler.upstream.stopping.is_set():
                raise ClientGoneError
            connection = self.handler.connection
            readable, _, _ = select.select([connection], [], [], min(left, 0.02))
            if readable and not connection.recv(1, socket.MSG_PEEK):
                raise ClientGoneError

    def event(self, data: dict[str, Any], *, ascii_only: bool = False) -> None:
        text = json.dumps(data, ensure_ascii=ascii_only)
        self.write(f"data: {text}\n\n".encode())

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        # As ASCII, so that NUL and lone surrogates travel as JSON escapes.
        self.event(self._envelope(choices=[choice]), ascii_only=True)

    def text(self, text: str) -> None:
        self.sent += text
        self.chunk({"content": text})

    def texts(self, text: str, delay: float = 0.0) -> None:
        self.chunk({"role": "assistant", "content": ""})
        for piece in split_pieces(text):
            self.wait(delay)
            self.text(piece)

    def end(self, reason: str | None = "stop") -> None:
        """Finish reason, usage if it was asked for, and [DONE]."""
        while self.handler.upstream.holding.is_set():
            self.wait(0.02)
        if reason:
            self.chunk({}, reason)
        if (self.body.get("stream_options") or {}).get("include_usage"):
            self.event(self._envelope(choices=[], usage=self.usage()))
        self.done()

    def done(self) -> None:
        self.write(b"data: [DONE]\n\n")
        self.close()

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        linger = struct.pack("ii", 1, 0)
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.handler.close_connection = True

    def cut(self) -> None:
        """Close the connection in the middle of the body."""
        self.handler.close_connection = True

    def send_json(
        self, data: dict[str, Any], status: int = 200, **headers: str
    ) -> None:
        self.open(status, "application/json", **headers)
        self.write(json.dumps(data).encode())
        self.close()

    def error(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        kind: str = "error",
        **headers: str,
    ) -> None:
        error = {"message": message, "type": kind, "code": code, "param": None}
        self.send_json({"error": error}, status, **headers)

    def whole(self, text: str, reason: str = "stop") -> None:
        """The answer to a request without `stream`."""
        self.sent = text
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        data = self._envelope(choices=[choice], usage=self.usage())
        self.send_json({**data, "object": "chat.completion"})

    def usage(self) -> dict[str, Any]:
        prompt = sum(count_message(m) for m in self.body.get("messages", []))
        output = count_text(self.sent)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": self._count_cached()},
        }

    def _count_cached(self) -> int:
        """Tokens of the longest prefix that an earlier request shares with this one."""
        mine = self.body.get("messages", [])
        best = 0
        for request in self.handler.upstream.requests:
            if request.body is not self.body:
                best = max(best, count_shared(mine, request.messages))
        return best

    def _envelope(self, **fields: Any) -> dict[str, Any]:
        return {
            "id": "chatcmpl-fake",
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.body.get("model", ""),
            **fields,
        }


Answer = Callable[..., None]


def count_text(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def count_message(message: dict[str, Any]) -> int:
    return count_text(str(message.get("content") or "")) + 4


def count_shared(mine: list[dict], others: list[dict]) -> int:
    tokens = 0
    for one, other in zip(mine, others, strict=False):
        if one != other:
            break
        tokens += count_message(one)
    return tokens


def split_pieces(text: str) -> Iterator[str]:
    """Words with the space around them, long ones cut; together exactly the text."""
    yield from re.findall(r"\s*\S{1,12}\s*|\s+", text)


def content_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def find_wish(body: dict[str, Any]) -> str:
    asked = [each for each in body.get("messages", ()) if each.get("role") == "user"]
    newest = content_of(asked[-1]) if asked else ""
    return newest.removeprefix(MODE_MARK) if newest.startswith(MODE_MARK) else ""


def choose(wish: str, time: int) -> str:
    """The mode for the n-th time: "500|500|ok" fails twice, then it answers."""
    modes = wish.split("|")
    return modes[min(time, len(modes)) - 1]


def make_reply(body: dict[str, Any]) -> str:
    """Return the reply of a well-behaved model: the newest user text, or a summary."""
    messages = body.get("messages", [])
    if messages and content_of(messages[0]).startswith(SUMMARY_MARK):
        return make_summary(content_of(messages[-1]))
    if messages and content_of(messages[-1]).startswith(SUMMARY_MARK):
        # It was asked for at the end of the conversation itself.
        told = json.loads(content_of(messages[-1]).splitlines()[-1])
        read = messages[-1 - told["messages"] : -1]
        said = [{"n": 0, "role": m["role"], "text": content_of(m)} for m in read]
        return make_summary(json.dumps({"messages": said}))
    texts = [content_of(m) for m in messages if m.get("role") == "user"]
    return f"Reply to: {texts[-1]}" if texts else "Hello!"


def make_summary(document: str) -> str:
    """A short plausible summary of the summariser's JSON request."""
    data = json.loads(document)
    parts = [data.get("previous_summary", "")]
    parts += [s["text"] for s in data.get("summaries", [])]
    messages = data.get("messages", [])
    if messages:
        numbers = [str(m.get("n", "?")) for m in messages]
        parts.append(f"Messages {numbers[0]} to {numbers[-1]}:")
    parts += [f"{m.get('role')}: {str(m.get('text', ''))[:80]}" for m in messages]
    limit = int(data.get("max_tokens", 400)) * 3
    return "\n".join(part for part in parts if part)[:limit]


def answer_ok(x: Exchange) -> None:
    reply = make_reply(x.body)
    if not x.is_stream:
        return x.whole(reply)
    x.texts(reply)
    x.end()


def answer_in_wire(x: Exchange) -> None:
    """Answer in one of the other wire formats: the newest text back."""
    wire = wires.find_wire(x.handler.path)
    said = [text for role, text in wires.list_said(wire, x.body) if role == "user"]
    reply = wires.Reply(f"Reply to: {said[-1]}" if said else "Hello!")
    model = str(x.body.get("model"))
    if not x.is_stream:
        return x.send_json(wires.write_whole(wire, model, reply))
    for event in wires.write_events(wire, model, reply):
        x.write(event)
    x.close()


def answer_slow(x: Exchange, count: str = "20", delay: str = "0.05") -> None:
    """`count` numbered words, one every `delay` seconds."""
    x.texts(" ".join(f"word{n}" for n in range(1, int(count) + 1)), float(delay))
    x.end()


def tell_story(seed: str, count: str) -> str:
    """A text that no other seed has, with characters of one to four bytes."""
    marks = ("", ",", " é", " 水", " \U0001f600", ".\n")
    words = [f"{seed}-{n}{marks[n % len(marks)]}" for n in range(1, int(count) + 1)]
    return " ".join(words)


def answer_story(
    x: Exchange, seed: str = "s", count: str = "100", delay: str = "0.02"
) -> None:
    """The story of `seed`, `count` words long, one every `delay` seconds."""
    started = time.monotonic()
    words = re.findall(r"\S+\s*", tell_story(seed, count))
    x.chunk({"role": "assistant", "content": ""})
    for number, word in enumerate(words):
        # By the clock, so that many stories on a busy machine keep their pace.
        x.wait(started + number * float(delay) - time.monotonic())
        x.text(word)
    x.end()


def answer_markdown(x: Exchange, size: str = "2000", delay: str = "0.01") -> None:
    """A reply with every kind of block, a word every `delay` seconds."""
    started = time.monotonic()
    x.chunk({"role": "assistant", "content": ""})
    for number, word in enumerate(split_pieces(markdown.write(int(size)))):
        x.wait(started + number * float(delay) - time.monotonic())
        x.text(word)
    x.end()


def answer_reason(reason: str | None) -> Callable[..., None]:
    def answer(x: Exchange) -> None:
        if not x.is_stream:
            return x.whole("This reply is", reason)
        x.texts("This reply is")
        x.end(reason)

    return answer


def answer_eof(x: Exchange) -> None:
    """A clean end of the body without finish reason and without [DONE]."""
    x.texts("This reply just")
    x.close()


def answer_done_only(x: Exchange) -> None:
    x.done()


def answer_reset(x: Exchange) -> None:
    x.texts("Before the reset")
    x.wait(0.05)
    x.reset()


def answer_reset_first(x: Exchange) -> None:
    x.reset()


def answer_cut(x: Exchange) -> None:
    x.texts("Before the cut")
    x.cut()


def answer_raw(data: bytes) -> Callable[..., None]:
    """Some text, then `data` as it is."""

    def answer(x: Exchange) -> None:
        x.texts("Before the noise")
        x.write(data)
        x.end()

    return answer


def answer_error_event(code: str, message: str) -> Callable[..., None]:
    def answer(x: Exchange) -> None:
        x.texts("Before the error")
        x.event({"error": {"message": message, "type": code, "code": code}})
        x.close()

    return answer


def answer_empty(x: Exchange) -> None:
    if not x.is_stream:
        return x.whole("")
    x.chunk({"role": "assistant", "content": ""})
    x.end()


def answer_html(x: Exchange) -> None:
    x.open(kind="text/html")
    x.write(b"<!doctype html><title>Welcome</title><p>It works!</p>")
    x.close()


def answer_text(*pieces: str) -> Callable[..., None]:
    def answer(x: Exchange) -> None:
        for piece in pieces:
            x.text(piece)
        x.end()

    return answer


def answer_auth(x: Exchange) -> None:
    """Like the real one, the error repeats what was sent."""
    key = x.handler.headers.get("authorization", "")
    x.error(401, f"Incorrect API key provided: {key}", code="invalid_api_key")


def answer_status(
    status: int, message: str, code: str | None = None, **headers: str
) -> Callable[..., None]:
    def answer(x: Exchange) -> None:
        x.error(status, message, code=code, **headers)

    return answer


def answer_reasoning(x: Exchange, count: str = "5", delay: str = "0.01") -> None:
    """Thinks in deltas of their own for a while, then answers."""
    for number in range(int(count)):
        x.wait(float(delay))
        x.chunk({"reasoning_content": f"thought {number} "})
    x.text("The answer.")
    x.end()


def answer_only_reasoning(x: Exchange) -> None:
    x.chunk({"reasoning_content": "Hmm."})
    x.end()


def answer_think(x: Exchange, form: str = "tags") -> None:
    """Answer as a server without a reasoning parser sends the text of its model."""
    before, after = {
        "tags": ("<think>\n", "\n</think>\n\n"),
        "closed": ("", "</think>"),
        "channel": ("<|channel>thought\n", "<channel|>"),
    }[form]
    x.texts(f"{before}The user greets me. I shall greet back.{after}Hello there!")
    x.end()


def answer_slow_start(x: Exchange, seconds: str = "0.5") -> None:
    """Silent at first, like a model that thinks out of sight."""
    x.chunk({"role": "assistant", "content": ""})
    x.wait(float(seconds))
    x.text("At last.")
    x.end()


def answer_usage(x: Exchange, value: str) -> None:
    """A whole reply with `value`, as JSON, for the token counts."""
    x.text("A complete answer.")
    x.chunk({}, "stop")
    x.event(x._envelope(choices=[], usage=json.loads(value.replace(";", ":"))))
    x.done()


def answer_bom(x: Exchange) -> None:
    x.write(b"\xef\xbb\xbf")
    x.text("First, ")
    x.text("second.")
    x.end()


def answer_plain_json(x: Exchange) -> None:
    """Does not stream, whatever was asked."""
    x.whole(make_reply(x.body))


def answer_refusal(x: Exchange) -> None:
    x.chunk({"refusal": "I cannot "})
    x.chunk({"refusal": "talk about that."})
    x.end()


def answer_after_stop(x: Exchange, content: str = "", delay: str = "0.02") -> None:
    """Goes on after its finish reason, for as long as one reads."""
    x.text("All is said.")
    x.chunk({}, "stop")
    while True:
        x.wait(float(delay))
        x.chunk({"content": content})


def answer_empty_forever(x: Exchange, delay: str = "0.02") -> None:
    while True:
        x.wait(float(delay))
        x.chunk({"content": ""})


def answer_strict(x: Exchange, *refused: str) -> None:
    """A server that refuses the named parts of a request, and answers without them:
    fields, roles ("system", "developer"), "alternation", "images"."""
    messages = x.body.get("messages", [])
    roles = [message["role"] for message in messages]
    talk = roles[1:] if roles[0] in ("system", "developer") else roles
    for part in refused:
        if part in ("system", "developer") and part in roles:
            message = f"Unsupported value: messages[0].role does not support {part!r}"
            return x.error(400, message, code="unsupported_value")
        if part in x.body:
            detail = [{"loc": ["body", part], "msg": "Extra inputs are not permitted"}]
            return x.send_json({"detail": detail, "input": x.body}, 422)
        if part == "images" and "image_url" in json.dumps(messages):
            message = "image_url is only supported by certain models."
            return x.error(400, message, code="invalid_value")
        is_mixed = any(one == other for one, other in zip(talk, talk[1:], strict=False))
        if part == "alternation" and is_mixed:
            message = "Conversation roles must alternate user/assistant/user/..."
            return x.error(500, message, kind="server_error")
    answer_ok(x)


def answer_retry_after(x: Exchange, seconds: str = "1") -> None:
    x.error(429, "Slow down.", code="rate_limit_exceeded", Retry_After=seconds)


def answer_hang(x: Exchange) -> None:
    """Accepts the request and never answers."""
    x.wait(A_LONG_TIME)


def answer_hang_mid(x: Exchange) -> None:
    x.texts("Before the silence")
    x.wait(A_LONG_TIME)


def answer_hang_end(x: Exchange) -> None:
    """Complete with its finish reason, but the connection stays open."""
    x.texts("All is said")
    x.chunk({}, "stop")
    x.wait(A_LONG_TIME)


def answer_drip(x: Exchange, delay: str = "0.1") -> None:
    """One letter at a time, without an end."""
    while True:
        x.text("x")
        x.wait(float(delay))


def answer_comments(x: Exchange, delay: str = "0.05") -> None:
    """Keeps the connection busy without ever sending a token."""
    while True:
        x.write(b": keep-alive\n\n")
        x.wait(float(delay))


def answer_huge(x: Exchange, size: str = "5000000") -> None:
    x.text("y" * int(size))
    x.end()


def answer_empty_deltas(x: Exchange, count: str = "20000") -> None:
    for _ in range(int(count)):
        x.chunk({})
    x.text("At last.")
    x.end()


def answer_foreign_events(x: Exchange) -> None:
    """Unexpected events and fields around an ordinary reply."""
    x.write(b'event: execute\ndata: {"code": "alert(1)"}\n\n')
    x.text("Honest")
    call = {"index": 0, "id": "c1", "function": {"name": "rm", "arguments": "{}"}}
    x.chunk({"tool_calls": [call]})
    x.chunk({"role": "assistant", "content": " reply"})
    x.end()


def answer_tool_call(x: Exchange) -> None:
    function = {"name": "search_transcript", "arguments": '{"query": "49ers"}'}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    x.chunk({"role": "assistant", "tool_calls": [call]})
    x.end("tool_calls")


TOO_LONG = "This model's maximum context length is 8192 tokens."
MODES: dict[str, Callable[..., None]] = {
    "ok": answer_ok,
    "ok-slow": answer_slow,
    "story": answer_story,
    "markdown": answer_markdown,
    "length": answer_reason("length"),
    "reason": lambda x, word="stop": answer_reason(word)(x),
    "reasoning": answer_reasoning,
    "only-reasoning": answer_only_reasoning,
    "think": answer_think,
    "slow-start": answer_slow_start,
    "usage": answer_usage,
    "bom": answer_bom,
    "plain-json": answer_plain_json,
    "refusal": answer_refusal,
    "after-stop": answer_after_stop,
    "empty-forever": answer_empty_forever,
    "strict": answer_strict,
    "402": answer_status(402, "Insufficient balance."),
    "content_filter": answer_reason("content_filter"),
    "eof": answer_eof,
    "no-reason": answer_reason(None),
    "done-only": answer_done_only,
    "reset": answer_reset,
    "reset-first": answer_reset_first,
    "cut": answer_cut,
    "bad-json": answer_raw(b'data: {"choices": [{"del\n\n'),
    "bad-shape": answer_raw(b'data: {"choices": 7}\n\n'),
    "bad-utf8": answer_raw(b'data: {"x": "\xff\xfe"}\n\n'),
    "error-event": answer_error_event("server_error", "Overloaded."),
    "error-event-length": answer_error_event("context_length_exceeded", TOO_LONG),
    "empty": answer_empty,
    "html": answer_html,
    "nul": answer_text("a\x00b", "\x00"),
    "surrogate": answer_text("a\ud800", "b\udc00"),
    "split-surrogate": answer_text("smile \ud83d", "\ude00!"),
    "401": answer_auth,
    "403": answer_status(403, "No access to this model."),
    "404": answer_status(404, "No such model.", "model_not_found"),
    "400": answer_status(400, "Bad temperature.", "invalid_value"),
    "400-context": answer_status(400, TOO_LONG, "context_length_exceeded"),
    "400-filter": answer_status(400, "Filtered.", "content_filter"),
    "429": answer_status(429, "Slow down.", "rate_limit_exceeded"),
    "429-retry-after": answer_retry_after,
    "429-quota": answer_status(429, "No credit.", "insufficient_quota"),
    "500": answer_status(500, "Internal error."),
    "503": answer_status(503, "Overloaded."),
    "hang": answer_hang,
    "hang-mid": answer_hang_mid,
    "hang-end": answer_hang_end,
    "drip": answer_drip,
    "comments": answer_comments,
    "huge": answer_huge,
    "empty-deltas": answer_empty_deltas,
    "foreign-events": answer_foreign_events,
    "tool-call": answer_tool_call,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9100)
    server = Upstream(parser.parse_args().port)
    print(f"OPENAI_BASE_URL={server.url}", flush=True)  # noqa: T201
    with server:
        threading.Event().wait()


if __name__ == "__main__":
    main()
