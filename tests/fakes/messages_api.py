"""The APIs of Anthropic, Google and Ollama on loopback, and a chat model that needs no
package and says the same in LangChain's chunks. All answer from one script, as
MessagesAPI.script says; the path of a request tells whose API is asked.
"""

import asyncio
import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.utils.function_calling import convert_to_openai_tool

from . import google_api, ollama_api
from .wires import split_words

USAGE = {
    **{"input_tokens": 9, "output_tokens": 5},
    **{"cache_read_input_tokens": 30, "cache_creation_input_tokens": 1},
}
PIECES = {"text": "text", "thinking": "thinking", "tool_use": "input"}
HANG, OVERLOADED = "hang", "overloaded"
OTHERS = (google_api, ollama_api)


def think(text):
    return {"type": "thinking", "thinking": text, "signature": f"signed {text}"}


def say(text):
    return {"type": "text", "text": text}


def call(name, number, **arguments):
    written = {"id": f"toolu_{number}", "name": name, "input": arguments}
    return {"type": "tool_use", **written}


class StatusError(Exception):
    def __init__(self, status):
        self.status_code = status
        super().__init__("refused, with sk-hunter2")


class MessagesAPI:
    """The server; .requests has what was asked."""

    def __init__(self):
        self.requests, self.script, self.closed = [], deque(), threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads, self.server.api = True, self
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.02,)).start()
        return self

    def __exit__(self, *error):
        self.closed.set()
        self.server.shutdown()
        self.server.server_close()

    def take(self, body):
        """The next entry: blocks of a reply, a status to refuse with, HANG after a
        first word, or OVERLOADED there."""
        self.requests.append(body)
        return self.script.popleft() if self.script else [say("A reply.")]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        api = self.server.api
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        its = next((each for each in OTHERS if each.PATH in self.path), None)
        entry = api.take(body)
        if isinstance(entry, int):
            self.refuse(entry, its)
            return
        self.close_connection = True
        self.send_response(200)
        kind = its.CONTENT_TYPE if its else "text/event-stream"
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for event in its.list_events(entry) if its else list_events("m", entry):
                self.write(event, its)
            while entry == HANG and not api.closed.wait(0.05):
                self.write(its.IDLE if its else {"type": "ping"}, its)
        except OSError:
            api.closed.set()

    def refuse(self, status, its):
        text = "refused, sk-hunter2"
        error = {"type": "invalid_request_error", "message": text}
        answer = {"type": "error", "error": error}
        answer = json.dumps(its.make_error(status, text) if its else answer).encode()
        # Ollama's package closes no connection itself.
        self.close_connection = True
        self.send_response(status)
        self.send_header("Connection", "close")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def write(self, event, its):
        if its:
            self.wfile.write(its.encode(event))
        else:
            self.wfile.write(f"event: {event['type']}\n".encode())
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()


def list_events(model, entry):
    head = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    head |= {"model": model, "stop_reason": None, "stop_sequence": None, "usage": USAGE}
    yield {"type": "message_start", "message": head}
    for index, block in enumerate([say("Wait")] if isinstance(entry, str) else entry):
        empty = {**block, PIECES[block["type"]]: {} if "input" in block else ""}
        yield at(index, "start", content_block={**empty, "signature": ""})
        for delta in list_deltas(block):
            yield at(index, "delta", delta=delta)
        yield at(index, "stop") if entry != HANG else {"type": "ping"}
    if entry == OVERLOADED:
        error = {"type": "overloaded_error", "message": "Overloaded"}
        yield {"type": "error", "error": error}
    if not isinstance(entry, str):
        ended = {"stop_reason": find_reason(entry), "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": USAGE}
        yield {"type": "message_stop"}


def at(index, kind, **values):
    return {"type": f"content_block_{kind}", "index": index, **values}


def find_reason(entry):
    return "tool_use" if entry[-1]["type"] == "tool_use" else "end_turn"


def list_deltas(block):
    if block["type"] == "tool_use":
        written = json.dumps(block["input"])
        for piece in (written[:5], written[5:]):
            yield {"type": "input_json_delta", "partial_json": piece}
        return
    name = PIECES[block["type"]]
    for word in split_words(block[name]):
        yield {"type": f"{name}_delta", name: word}
    if "signature" in block:
        yield {"type": "signature_delta", "signature": block["signature"]}


class OwnChatModel(BaseChatModel):
    """A chat model without a server: langchain-anthropic reads the fake events."""

    api: object
    temperature: float | None = None

    @property
    def _llm_type(self):
        return "own"

    def bind_tools(self, tools, **options):
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    def _generate(self, *args, **options):
        raise AssertionError("asked without a stream")

    async def _astream(self, messages, *args, **options):
        entry = self.api.take({"messages": messages, **options})
        if isinstance(entry, int):
            raise StatusError(entry)
        for event in list_events("own", entry):
            if event["type"] == "error":
                raise StatusError(529)
            if (made := self.read(event)) is not None:
                yield ChatGenerationChunk(message=made)
        try:
            if entry == HANG:
                await asyncio.sleep(60)
        finally:
            if entry == HANG:
                self.api.closed.set()

    def read(self, event):
        if event["type"] == "message_delta":
            usage = {"input_tokens": 40, "output_tokens": 5, "total_tokens": 45}
            usage["input_token_details"] = {"cache_read": 30}
            ended = {"stop_reason": event["delta"]["stop_reason"]}
            return AIMessageChunk([], usage_metadata=usage, response_metadata=ended)
        block, index = event.get("content_block", {}), event.get("index")
        if block.get("type") == "tool_use":
            piece = {"id": block["id"], "name": block["name"], "args": ""}
            piece = tool_call_chunk(**piece, index=index)
            return AIMessageChunk([], tool_call_chunks=[piece])
        delta = event.get("delta", {})
        if "partial_json" in delta:
            piece = tool_call_chunk(args=delta["partial_json"], index=index)
            return AIMessageChunk([], tool_call_chunks=[piece])
        kind = "text" if "text" in delta else "thinking"
        return (
            AIMessageChunk([{**delta, "type": kind, "index": index}]) if delta else None
        )


class WholeChatModel(OwnChatModel):
    """A model that does not stream, takes no tools, and raises for a temperature."""

    def bind_tools(self, tools, **options):
        raise NotImplementedError

    async def _astream(self, *args, **options):
        raise NotImplementedError
        yield

    async def astream(self, messages, **options):
        yield AIMessage("Whole.", usage_metadata=None)


current: MessagesAPI | None = None


def make_own(name, **told):
    return OwnChatModel(api=current)


def make_whole(name, **told):
    return WholeChatModel(api=current)


def make_none(name, **told):
    return name
