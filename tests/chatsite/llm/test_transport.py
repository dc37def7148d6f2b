"""The site's connection to a model's server does what LangChain's own class does over
httpx: through proxies, with own certificates, after redirects, with a password
in the address.
"""

import asyncio
import base64
import os

import openai
import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

from chatsite.llm import deltas, providers, transport
from chatsite.llm.errors import translate_error
from chatsite.llm.streaming import ReplyStream
from tests.fakes import network
from tests.patience import within

MESSAGES = [HumanMessage("hi! I'm Lance")]
KEY = "sk-test-SECRET"
SECRET = "s@cret/ö"
QUOTED = "s%40cret%2F%C3%B6"


def basic(user, password):
    pair = f"{user}:{password}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Remove the proxies and authorities of the machine that runs the tests."""
    for name in os.environ:
        if name.lower().endswith("_proxy") or name.startswith("SSL_CERT"):
            monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return network.make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def secure(certificate):
    with network.secure_upstream(*certificate[:2]) as server:
        yield server


@pytest.fixture
def proxy():
    with network.serve(network.Proxy, wanted="") as server:
        server.url = f"127.0.0.1:{server.server_port}"
        yield server


async def read(model):
    found, code = [], ""
    try:
        async for batch in deltas.read_deltas(model, MESSAGES):
            found += batch
    except Exception as error:  # noqa: BLE001
        code = translate_error(error).code
    text = "".join(delta.text for delta in found)
    # As ReplyStream says of a reply that has nothing in it.
    return text, code or ("" if text else "bad_response")


async def read_twice(model):
    return [await read(model), await read(model)]


async def compare(settings, base_url, *servers):
    """Return the results of two requests, ours and theirs, with those that the servers
    saw.
    """
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = base_url, KEY
    providers.build.cache_clear()
    outcomes = []
    for is_ours in (True, False):
        async with openai.DefaultAsyncHttpxClient() as client:
            plain = {"base_url": base_url, "http_async_client": client}
            plain |= {"stream_usage": True, "max_retries": 0}
            model = (
                providers.build("ok")
                if is_ours
                else ChatOpenAI(model="ok", api_key=KEY, **plain)
            )
            said = await read_twice(model)
        outcomes.append((said, [take(server) for server in servers]))
    await providers.build.close()
    ours, theirs = outcomes
    assert ours == theirs
    return ours


def take(server):
    """Return the requests that a server saw, and clear them."""
    if hasattr(server, "seen"):
        seen, server.seen = server.seen, []
        return seen
    names = ("authorization", "host", "cookie", "content-length", "accept-encoding")
    seen = [(r.path, *(r.headers.get(name) for name in names)) for r in server.requests]
    server.requests.clear()
    return seen


SAID = ("Reply to: hi! I'm Lance", "")


@pytest.mark.parametrize("user", [f"user:{QUOTED}@", "token@", f":{QUOTED}@"])
async def test_a_password_in_the_address(upstream, settings, user):
    url = upstream.url.replace("//", f"//{user}")
    said, [seen] = await compare(settings, url, upstream)
    assert said == [SAID, SAID]
    name, _, password = user[:-1].partition(":")
    expected = basic(name, SECRET if password else "")
    assert {each[1] for each in seen} == {expected}


async def test_key_is_in_no_address_of_a_log(upstream, settings, caplog):
    caplog.set_level("DEBUG")
    settings.OPENAI_BASE_URL = upstream.url.replace("//", f"//user:{QUOTED}@")
    stream = ReplyStream("500", MESSAGES)
    settings.MODEL_MAX_ATTEMPTS = 1
    with pytest.raises(Exception, match="unavailable"):
        [piece async for piece in stream]
    assert upstream.calls
    for shown in (QUOTED, SECRET, basic("user", SECRET)[6:]):
        assert shown not in caplog.text
    assert providers.name_provider("ok") == "127.0.0.1"


@pytest.mark.parametrize(
    "path", ["/v1/", "/a%20b/%7Ec%2Fd/v1", "/v1?api-version=1&x=%2F"]
)
async def test_an_address_is_taken_as_it_is(upstream, settings, path):
    url = upstream.url.removesuffix("/v1") + path
    said, [seen] = await compare(settings, url, upstream)
    assert len(seen) == 2


PROXIES = {
    "for http": ({"HTTP_PROXY": "http://{}"}, 2),
    "in small letters": ({"http_proxy": "http://{}"}, 2),
    "without a scheme": ({"HTTP_PROXY": "{}"}, 2),
    "for everything": ({"ALL_PROXY": "http://{}"}, 2),
    "for https only": ({"HTTPS_PROXY": "http://{}"}, 0),
    "with a password": ({"HTTP_PROXY": f"http://me:{QUOTED}@{{}}"}, 2),
    "not for this host": ({"HTTP_PROXY": "http://{}", "NO_PROXY": "127.0.0.1"}, 0),
    "not for another": ({"HTTP_PROXY": "http://{}", "NO_PROXY": "example.com"}, 2),
    "for none": ({"HTTP_PROXY": "http://{}", "NO_PROXY": "*"}, 0),
    "that is away": ({"HTTP_PROXY": "http://127.0.0.1:9"}, 0),
}


@pytest.mark.parametrize("name", PROXIES)
async def test_a_proxy(upstream, settings, environment, proxy, name):
    values, count = PROXIES[name]
    for variable, value in values.items():
        environment.setenv(variable, value.format(proxy.url))
    said, [asked, seen] = await compare(settings, upstream.url, proxy, upstream)
    assert len(asked) == count
    is_away = name == "that is away"
    assert said == [("", "unavailable") if is_away else SAID] * 2
    if "password" in name:
        assert {given for _, _, given in asked} == {basic("me", SECRET)}


@pytest.mark.parametrize("given", ["", "me:wrong@"])
async def test_a_proxy_that_wants_a_password(
    upstream, settings, environment, proxy, given
):
    proxy.wanted = basic("me", SECRET)
    environment.setenv("HTTP_PROXY", f"http://{given}{proxy.url}")
    said, [asked, seen] = await compare(settings, upstream.url, proxy, upstream)
    assert said == [("", "bad_request")] * 2
    assert seen == []


async def test_a_proxy_and_a_password_in_the_address(
    upstream, settings, environment, proxy
):
    environment.setenv("HTTP_PROXY", f"http://me:{QUOTED}@{proxy.url}")
    url = upstream.url.replace("//", "//user:other@")
    said, [asked, seen] = await compare(settings, url, proxy, upstream)
    assert said == [SAID] * 2
    assert {given for _, _, given in asked} == {basic("me", SECRET)}
    assert {each[1] for each in seen} == {basic("user", "other")}
    assert "other" not in str(asked)


@pytest.mark.parametrize("user", ["", f"me:{QUOTED}@", "me:wrong@"])
async def test_a_tunnel_through_a_proxy(
    secure, settings, environment, proxy, certificate, user
):
    if user:
        proxy.wanted = basic("me", SECRET)
    environment.setenv("HTTPS_PROXY", f"http://{user}{proxy.url}")
    environment.setenv("SSL_CERT_FILE", str(certificate[1]))
    url = secure.url.replace("http://127.0.0.1", "https://localhost")
    said, [asked, seen] = await compare(settings, url, proxy, secure)
    is_refused = "wrong" in user
    assert said == [("", "unavailable") if is_refused else SAID] * 2
    assert {each[0] for each in asked} == {"CONNECT"}


AUTHORITIES = {
    "none": ({}, "localhost", False),
    "a file": ({"SSL_CERT_FILE": 1}, "localhost", True),
    "a folder": ({"SSL_CERT_DIR": 2}, "localhost", True),
    "of another name": ({"SSL_CERT_FILE": 1}, "127.0.0.1", False),
}


@pytest.mark.parametrize("name", AUTHORITIES)
async def test_an_authority_of_ones_own(
    secure, settings, environment, certificate, name
):
    values, host, is_known = AUTHORITIES[name]
    for variable, place in values.items():
        environment.setenv(variable, str(certificate[place]))
    url = secure.url.replace("http://127.0.0.1", f"https://{host}")
    said, _ = await compare(settings, url, secure)
    assert said == [SAID if is_known else ("", "unavailable")] * 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("user", ["", "user:other@"])
@pytest.mark.parametrize("own", ["", "me:mine@"])
async def test_a_redirect(upstream, settings, status, user, own):
    target = upstream.url.removesuffix("/v1").replace("//", f"//{user}")
    with network.serve(network.Redirector, status=status, target=target) as server:
        url = f"http://{own}127.0.0.1:{server.server_port}/v1"
        said, [asked, seen] = await compare(settings, url, server, upstream)
    assert len(asked) == 2
    if status in (307, 308):
        assert said == [SAID] * 2
        # Another port is another server: it gets no key.
        assert {each[1] for each in seen} == {None}


async def test_a_redirect_to_itself_ends(settings):
    with network.serve(network.Redirector, status=307, target="") as server:
        server.target = f"http://127.0.0.1:{server.server_port}"
        said, [asked] = await compare(settings, f"{server.target}/v1", server)
    assert said[0][0] == ""
    assert len(asked) < 100


async def test_long_headers_and_cookies(upstream, settings):
    def answer(x):
        x.open(X_Trace="x" * 30_000, Set_Cookie="place=7; Path=/")
        x.texts("Hello")
        x.end()

    upstream.script(*[answer] * 4)
    said, [seen] = await compare(settings, upstream.url, upstream)
    assert said == [("Hello", "")] * 2
    assert [each[3] for each in seen] == [None, "place=7"]


@pytest.mark.parametrize("status", [307, 400, 500])
async def test_endless_error_is_read_up_to_a_limit(
    upstream, settings, monkeypatch, status
):
    monkeypatch.setattr(transport, "MAX_ERROR_BYTES", 100_000)
    settings.MODEL_MAX_ATTEMPTS = 1

    def answer(x):
        x.open(status, "text/plain", Location="/v1/other")
        while True:
            x.write(b"x" * 10_000)

    upstream.script(answer, "ok")
    stream = ReplyStream("ok", MESSAGES, first=20)
    code = ""
    with within(15):
        try:
            assert "".join([piece async for piece in stream]) == SAID[0]
        except Exception as error:  # noqa: BLE001
            code = translate_error(error).code
    assert code == {307: "", 400: "bad_request", 500: "unavailable"}[status]
    assert await asyncio.to_thread(upstream.wait_closed_early)
