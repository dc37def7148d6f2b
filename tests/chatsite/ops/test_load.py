"""Limits of concurrent requests, the answer to the others, and the event
loop's delay.
"""

import asyncio
import time

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from prometheus_client import REGISTRY

from chatsite.ops import load

LIMIT = 2


class Application:
    """Each request waits until its path is let go; a download goes on after that."""

    def __init__(self):
        self.begun, self.refused = [], []
        self.gates = {}

    async def __call__(self, scope, receive, send):
        path = scope["path"]
        if load.TOO_BUSY in scope:
            self.refused.append(path)
            return
        self.begun.append(path)
        if path == "/leaves":
            load.leave_place(scope)
        await self.gate(path).wait()
        if path == "/breaks":
            raise RuntimeError
        await send({"type": "http.response.start", "status": 200})
        if path == "/download":
            await self.gate("end of download").wait()
        await send({"type": "http.response.body", "body": b""})

    def gate(self, path):
        return self.gates.setdefault(path, asyncio.Event())


@pytest.fixture
async def site(request):
    """ask(path, session) -> its task, when it has begun or stands in the queue."""
    application = Application()
    limit = getattr(request, "param", None) or load.limit_requests
    limited = limit(application, LIMIT)
    tasks = []

    async def nowhere(message):
        """The server's end of the connection."""

    async def ask(path, session=""):
        cookie = (b"cookie", f"theme=dark; sessionid={session}".encode())
        scope = {"path": path, "headers": [cookie] if session else []}
        tasks.append(asyncio.create_task(limited(scope, None, nowhere)))
        await asyncio.sleep(0)
        return tasks[-1]

    application.ask = ask
    yield application
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_requests_above_the_limit_wait_in_their_order(site):
    one, *_ = [await site.ask(path) for path in ("/1", "/2", "/3", "/4")]
    assert site.begun == ["/1", "/2"]
    site.gate("/1").set()
    await one
    await asyncio.sleep(0)
    assert site.begun == ["/1", "/2", "/3"]


async def test_a_download_keeps_no_place_for_as_long_as_it_is_read(site):
    for path in ("/download", "/2", "/3"):
        await site.ask(path)
    assert site.begun == ["/download", "/2"]
    site.gate("/download").set()
    await asyncio.sleep(0.01)
    assert site.begun == ["/download", "/2", "/3"]
    site.gate("end of download").set()
    await site.ask("/4")
    assert "/4" not in site.begun


async def test_a_request_that_waits_elsewhere_leaves_its_place_once(site):
    leaving, *_ = [await site.ask(path) for path in ("/leaves", "/1", "/2", "/3")]
    assert site.begun == ["/leaves", "/1", "/2"]
    site.gate("/leaves").set()
    await leaving
    await asyncio.sleep(0)
    assert site.begun == ["/leaves", "/1", "/2"]


async def test_a_request_that_fails_gives_its_place_back(site):
    task = await site.ask("/breaks")
    for path in ("/2", "/3"):
        await site.ask(path)
    site.gate("/breaks").set()
    with pytest.raises(RuntimeError):
        await task
    await asyncio.sleep(0)
    assert site.begun == ["/breaks", "/2", "/3"]


async def test_a_request_that_waited_in_vain_is_marked_as_too_busy(site, monkeypatch):
    monkeypatch.setattr(load, "WAIT_SECONDS", 0.01)
    before = REGISTRY.get_sample_value("windowpane_requests_refused_total")
    for path in ("/1", "/2"):
        await site.ask(path)
    await (await site.ask("/3"))
    assert (site.begun, site.refused) == (["/1", "/2"], ["/3"])
    after = REGISTRY.get_sample_value("windowpane_requests_refused_total")
    assert after == before + 1


@pytest.mark.parametrize("path", load.FOR_MACHINES)
async def test_requests_of_monitors_do_not_wait(site, path):
    for waiting in ("/1", "/2", "/3", path):
        await site.ask(waiting)
    assert site.begun == ["/1", "/2", path]


@pytest.mark.parametrize("site", [load.keep_room], indirect=True)
async def test_strangers_who_read_shared_pages_wait_for_one_another_alone(site):
    for path in ("/s/1/", "/s/2/", "/s/3/", "/1"):
        await site.ask(path)
    # Of the two places one is theirs.
    assert site.begun == ["/s/1/", "/1"]
    site.gate("/s/1/").set()
    await asyncio.sleep(0.01)
    assert site.begun == ["/s/1/", "/1", "/s/2/"]


@pytest.mark.parametrize("site", [load.keep_room], indirect=True)
async def test_logins_keep_no_page_from_others(site):
    for path in ("/admin/login/", "/accounts/login/", "/accounts/signup/", "/1"):
        await site.ask(path)
    assert site.begun == ["/admin/login/", "/1"]


def keep_much_room(application, limit):
    return load.keep_room(application, 16)


@pytest.mark.parametrize("site", [keep_much_room], indirect=True)
async def test_a_link_does_not_take_the_places_of_others(site):
    # Of the sixteen places four are for shared pages, and two for each link.
    for path in ("/s/one/", "/s/one/files/", "/s/one/", "/s/one/", "/s/two/", "/s/3/"):
        await site.ask(path)
        await asyncio.sleep(0)
    assert site.begun == ["/s/one/", "/s/one/files/", "/s/two/", "/s/3/"]
    site.gate("/s/one/").set()
    await asyncio.sleep(0.01)
    assert site.begun[4:] == ["/s/one/", "/s/one/"]


@pytest.mark.parametrize("site", [keep_much_room], indirect=True)
async def test_a_request_that_waited_for_its_link_does_not_wait_again(
    site, monkeypatch
):
    monkeypatch.setattr(load, "WAIT_SECONDS", 0.01)
    for path in ("/s/one/", "/s/one/", "/s/two/", "/s/two/"):
        await site.ask(path)
    await (await site.ask("/s/one/"))
    assert site.refused == ["/s/one/"]


@pytest.mark.parametrize(
    ("language", "words"), [("en", "too busy"), ("zh-hans", "太忙")]
)
async def test_the_answer_is_a_page_with_everything_that_pages_have(language, words):
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "headers": [(b"accept-language", language.encode()), (b"host", b"testserver")],
        load.TOO_BUSY: True,
    }
    # Without the fixture for a database, which pytest-django would refuse to ask.
    asked = ApplicationCommunicator(get_asgi_application(), scope)
    await asked.send_input({"type": "http.request", "body": b""})
    start = await asked.receive_output(timeout=10)
    headers = dict(start["headers"])
    assert start["status"] == 503
    assert headers[b"Retry-After"] == b"5"
    assert b"Content-Security-Policy" in headers
    body = await asked.receive_output(timeout=10)
    assert words in body["body"].decode()
    await asked.wait()


async def test_a_loop_that_is_late_is_seen(monkeypatch):
    monkeypatch.setattr(load, "SAMPLE_SECONDS", 0.01)
    name = "windowpane_loop_delay_seconds_sum"
    before = REGISTRY.get_sample_value(name)
    load.watch_loop()
    await asyncio.sleep(0)
    time.sleep(0.2)  # noqa: ASYNC251
    await asyncio.sleep(0.02)
    assert REGISTRY.get_sample_value(name) - before > 0.15


@pytest.mark.parametrize("site", [keep_much_room], indirect=True)
async def test_a_browser_does_not_take_the_places_of_others(site):
    # Of the sixteen places it has four.
    for number in range(1, 7):
        await site.ask(f"/{number}", "one")
    await site.ask("/7", "two")
    await site.ask("/8")
    await site.ask("/s/link/", "one")  # reads no session
    await asyncio.sleep(0)
    assert site.begun == ["/1", "/2", "/3", "/4", "/7", "/8", "/s/link/"]
    site.gate("/1").set()
    await asyncio.sleep(0.01)
    assert site.begun[7:] == ["/5"]


@pytest.mark.parametrize("site", [load.keep_room], indirect=True)
async def test_a_request_that_waits_elsewhere_leaves_its_browsers_place(site):
    for path in ("/leaves", "/1", "/2", "/3"):
        await site.ask(path, "one")
        await asyncio.sleep(0)
    assert site.begun == ["/leaves", "/1", "/2"]
