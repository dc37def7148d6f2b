"""The endpoint of a server process, as real clients use it."""

import json
import socket
from types import SimpleNamespace

import openai
import pytest

from bench.endpoint.killing import kill_often
from chatsite.live.backpressure import UnreadRequest
from tests.clients import Person

pytestmark = pytest.mark.server


def make_late_request(monkeypatch, *, takes_long):
    """A request whose answer has begun, a thousand seconds ago."""
    request, ended = UnreadRequest.__new__(UnreadRequest), []
    request.server = SimpleNamespace(http_timeout=60)
    request._response_started = True
    request.takes_long = takes_long
    monkeypatch.setattr(UnreadRequest, "duration", lambda self: 1000.0)
    monkeypatch.setattr(UnreadRequest, "finish", lambda self: ended.append(True))
    request.check_timeouts()
    return ended


def test_a_long_reply_outlasts_what_a_page_may_take(monkeypatch):
    assert make_late_request(monkeypatch, takes_long=False)
    assert not make_late_request(monkeypatch, takes_long=True)


async def test_streams_keep_their_text_when_the_process_is_killed():
    kills, streams = 2, 3
    found, audit = await kill_often(kills, streams)
    assert found["streams"] + found["refused"] == kills * streams
    assert found["streams"] > 0
    assert found["cut, and marked"] + found["whole"] == found["streams"]
    assert audit == "clean"


@pytest.fixture
def site(start_site, provider):
    return start_site(
        OPENAI_BASE_URL=provider.url, OPENAI_API_KEY="sk-test-SECRET", CHAT_MODEL="ok"
    )


@pytest.fixture
def person(site):
    return Person(site, "alice")


@pytest.fixture
def key(site, person):
    return site.manage("create_key", "alice", "--name", "openai").strip()


def test_clients_of_openai_are_served(site, provider, person, key):
    with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0) as client:
        _check_conversation(site, provider, person, client)
        _check_cut_stream(client)
    _check_slow_reader(site, provider, key)
    _check_smuggling(site, provider, key)


def _check_conversation(site, provider, person, client):
    assert "ok" in [model.id for model in client.models.list()]
    said = [{"role": "user", "content": "mode=story:7:40:0"}]
    stream = client.chat.completions.create(model="ok", messages=said, stream=True)
    told = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    said += [{"role": "assistant", "content": told}, {"role": "user", "content": "Hi"}]
    raw = client.chat.completions.with_raw_response.create(model="ok", messages=said)
    assert raw.content == bytes(provider.requests[-1].answered)
    assert raw.headers["x-windowpane-lineage"] == "continued"
    path = f"/c/{raw.headers['x-windowpane-conversation']}/"
    shown = person.get_json(f"{path}transcript.json")["messages"]
    assert [each["text"] for each in shown[1:3]] == [told, "Hi"]
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wp_x").models.list()
    assert "openai writes this conversation." in person.get(path)


def _check_cut_stream(client):
    """A provider that breaks off in the middle is no end of the reply."""
    said = [{"role": "user", "content": "mode=cut"}]
    stream = client.chat.completions.create(model="ok", messages=said, stream=True)
    with pytest.raises(openai.APIError):
        list(stream)


def _check_slow_reader(site, provider, key):
    """A client that reads nothing holds the provider up, and no memory of the site."""
    said = [{"role": "user", "content": "mode=story:9:400000:0"}]
    body = json.dumps({"model": "ok", "messages": said, "stream": True}).encode()
    host, _, port = site.url.removeprefix("http://").partition(":")
    before = provider.closed_early
    with socket.create_connection((host, int(port))) as line:
        line.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\n" % host.encode()
            + b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
            % (key.encode(), len(body))
            + body
        )
        assert line.recv(12) == b"HTTP/1.1 200"
    assert provider.wait_closed_early(before + 1)
    assert len(provider.requests[-1].answered) < 40_000_000


def _check_smuggling(site, provider, key):
    """Check that the end of a request is never in doubt: bytes that could be read in
    two ways are refused, and the rest is never taken for a request.
    """
    host = site.url.removeprefix("http://").encode()
    name, _, port = site.url.removeprefix("http://").partition(":")
    said = b'{"model":"ok","messages":[{"role":"user","content":"Hi"}]}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\n" % host
    head += b"Authorization: Bearer %s\r\n" % key.encode()
    hidden = head + b"Content-Length: %d\r\n\r\n%s" % (len(said), said)
    whole, before = b"%d" % len(said + hidden), len(provider.requests)
    for lines in (
        b"Content-Length: %s\r\nTransfer-Encoding: chunked\r\n" % whole,
        b"Transfer-Encoding: chunked\r\nContent-Length: %s\r\n" % whole,
        b"Content-Length: 5\r\nContent-Length: %s\r\n" % whole,
        b"Content-Length: 5, %s\r\n" % whole,
        b"Content-Length: +5\r\n",
        b"Content-Length : 5\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
    ):
        with socket.create_connection((name, int(port)), 10) as line:
            line.sendall(head + lines + b"\r\n0\r\n\r\n" + hidden)
            answer = b""
            while chunk := line.recv(4096):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 400"), (lines, answer)
        assert answer.count(b"HTTP/1.1") == 1, (lines, answer)
    assert len(provider.requests) == before
