"""Servers of models on this machine: they are found, and used only if chosen."""

import hashlib
import json
import socket
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest
from channels.db import database_sync_to_async as reading
from langchain_core.messages import HumanMessage

from chatsite.llm import providers
from chatsite.llm.errors import LLMError
from chatsite.llm.local import servers
from chatsite.llm.streaming import ReplyStream
from chatsite.turns import model_access
from memory import transcript
from memory.models import ModelCall
from memory.view import rebuilding
from tests.servers import free_port

from ..sockets import Chat

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


def listing(*ids, **more):
    rows = [{"id": name, "object": "model", **more} for name in ids]
    return HEAD + json.dumps({"object": "list", "data": rows}).encode()


@contextmanager
def serve(answer):
    """A server that sends these bytes, or pieces, to each client; None: nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked, clients = [], []

        def run():
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                clients.append(client)
                asked.append(client.recv(4096))
                if answer is not None:
                    for piece in [answer] if isinstance(answer, bytes) else answer:
                        try:
                            client.sendall(piece)
                        except OSError:
                            break
                    client.close()

        threading.Thread(target=run, daemon=True).start()
        yield server.getsockname()[1], asked
        server.shutdown(socket.SHUT_RDWR)
        for client in clients:
            client.close()


@pytest.fixture
def find(monkeypatch):
    """find(name=answer, …) -> the models found at servers with these answers."""
    with ExitStack() as stack:
        monkeypatch.setattr(servers, "_found", [])

        def find(own=0, **answers):
            made = {
                name: stack.enter_context(serve(each)) for name, each in answers.items()
            }
            find.asked = {name: asked for name, (_port, asked) in made.items()}
            find.ports = {name: port for name, (port, _asked) in made.items()}
            ports = {port: name for name, port in find.ports.items()}
            monkeypatch.setattr(servers, "SERVERS", {free_port(): "Absent", **ports})
            found = servers.find_servers(find.ports.get(own, 0))
            return [model.name for each in found for model in each.models]

        yield find
        providers.build.cache_clear()


def drip():
    yield HEAD
    while True:
        time.sleep(0.02)
        yield b" "


GARBAGE = {
    "bytes": b"\x00\xff\x1b[2J" * 100,
    "no JSON": HEAD + b"<html>",
    "no UTF-8": HEAD + b'{"data": [{"id": "\xff"}]}',
    "deep": HEAD + b"[" * 50_000,
    "long": HEAD + b" " * servers.MOST_BYTES + b'{"data": [{"id": "x"}]}',
    "no list": HEAD + b'{"data": {"id": "x"}}',
    "no objects": HEAD + b'{"data": [1, null, ["id"], {"id": 7.5e999}, {}]}',
    "control": listing("\x1b[31mred", "two words", "x" * 81, "", "o1-clone", "中"),
    "window": listing("x", max_model_len=-1),
    "refused": b"HTTP/1.1 401 Unauthorized\r\n\r\n" + listing("x"),
    "silent": b"",
}


def test_models_of_a_server_are_found_with_their_windows(find):
    assert find(vLLM=listing("a/b:8b", "a/b:8b", max_model_len=4096)) == [
        "vLLM: a/b:8b"
    ]
    assert find.asked["vLLM"][0].startswith(b"GET /v1/models HTTP/1.0\r\n")
    assert providers.context_window("vLLM: a/b:8b") == 4096
    assert servers.describe_servers().strip() == (
        "In the model menu: vLLM (a/b:8b). Used only if chosen."
    )


def test_window_of_llama_cpp_is_read(find):
    assert find(LM=listing("x", meta={"n_ctx": 8192})) == ["LM: x"]
    assert providers.context_window("LM: x") == 8192
    assert find(Odd=listing("x", meta=[1])) == ["Odd: x"]


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_tolerated(find, kind):
    assert find(Bad=GARBAGE[kind], Good=listing("ok")) == ["Good: ok"]


def test_redirect_is_not_followed(find):
    with serve(listing("elsewhere")) as (port, asked):
        to = b"Location: http://127.0.0.1:%d/v1/models\r\n\r\n" % port
        assert find(Bad=b"HTTP/1.1 302 Found\r\n" + to) == []
        assert find.asked["Bad"]
        assert asked == []


def test_servers_that_hang_take_no_longer_than_one_alone(find):
    started = time.monotonic()
    assert find(A=None, B=drip(), C=None, D=listing("ok")) == ["D: ok"]
    assert time.monotonic() - started < servers.SECONDS * 2.5


def test_server_offers_its_first_models_only(find):
    found = find(Many=listing(*(f"m{number}" for number in range(99))))
    assert len(found) == servers.MOST_MODELS


def test_port_of_the_site_and_configured_servers_are_not_asked(find, settings):
    assert find(own="A", A=listing("x")) == []
    assert not find.asked["A"]
    settings.OPENAI_BASE_URL = f"http://localhost:{find.ports['A']}/v1"
    assert servers.find_servers(0) == []


async def test_model_is_offered_and_used_only_if_chosen(find, upstream, settings):
    find(Ollama=listing("ok"))
    name = "Ollama: ok"
    settings.CHAT_MODEL = settings.OPENAI_BASE_URL = settings.OPENAI_API_KEY = ""
    assert providers.default_model() == providers.DEMO == providers.list_models()[0]
    assert name in providers.list_models()
    assert providers.name_provider(name) == "Ollama"
    (server,) = servers.list_servers()
    object.__setattr__(server, "base_url", upstream.url)
    stream = ReplyStream(name, [HumanMessage("hi!")])
    assert "".join([piece async for piece in stream]) == "Reply to: hi!"
    (sent,) = upstream.calls
    assert sent.body["model"] == "ok" == stream.body_fields["model"]


@pytest.mark.parametrize("key", ["", "sk-x"])
async def test_model_that_is_gone_goes_to_no_other_server(settings, upstream, key):
    settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = key, upstream.url
    assert not model_access.may_use(1, "Ollama: ok")
    with pytest.raises(LLMError) as raised:
        await anext(ReplyStream("Ollama: ok", [HumanMessage("hi!")]))
    assert (raised.value.code, upstream.calls) == ("model_denied", [])


@pytest.mark.django_db(transaction=True)
async def test_request_to_a_found_model_is_proved(
    find, upstream, settings, alice, session
):
    find(Ollama=listing("ok"))
    (server,) = servers.list_servers()
    object.__setattr__(server, "base_url", upstream.url)
    made = await reading(transcript.create_conversation)(alice, model="Ollama: ok")
    async with Chat(made, session) as chat:
        assert (await chat.say("hi!"))["state"] == "done"
    call = await reading(ModelCall.objects.get)(purpose="reply")
    assert call.model == "Ollama: ok"
    assert upstream.calls[0].body["model"] == "ok"
    assert await reading(rebuilding.verify_context)(call)
    assert call.body_sha256 == hashlib.sha256(upstream.calls[0].raw).hexdigest()
