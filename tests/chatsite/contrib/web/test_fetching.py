"""Pages are fetched within limits on time, bytes and redirects."""

import time
import tracemalloc

import pytest

from chatsite.contrib.web import fetching
from chatsite.contrib.web.fetching import FetchError
from tests.patience import PATIENCE

TOO_MUCH = "too much to read"


async def fetch(web, path):
    return await fetching.fetch_page(f"{web.origin}/{path}")


async def test_a_page_comes_as_it_is(web):
    found = await fetch(web, "article")
    assert found.data.startswith(b"<!doctype html>")
    assert (found.media_type, found.charset) == ("text/html", "utf-8")
    assert found.address == f"{web.origin}/article"


async def test_a_packed_page_is_unpacked(web):
    assert (await fetch(web, "packed")).data.startswith(b"<!doctype html>")


async def test_redirects_are_followed_a_few_times(web):
    found = await fetch(web, "to?url=/to?url=/article")
    assert found.address == f"{web.origin}/article"
    with pytest.raises(FetchError, match="more than 5 times"):
        await fetch(web, "loop")
    assert web.seen.count("/loop") == 6


@pytest.mark.parametrize("path", ["huge", "endless", "bomb", "empty_blocks"])
async def test_page_over_the_limit_is_refused(web, settings, path):
    settings.WEB_MAX_BYTES = 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(FetchError, match=TOO_MUCH):
            await fetch(web, path)
        # The server of the test has its 50 MB in this process, too.
        of_client = tracemalloc.take_snapshot().filter_traces(
            [tracemalloc.Filter(True, "*/web/fetching.py")]
        )
        assert sum(each.size for each in of_client.statistics("filename")) < 4_000_000
    finally:
        tracemalloc.stop()


async def test_a_page_that_never_ends_has_its_time(web, settings):
    settings.WEB_SECONDS = 0.5
    begun = time.monotonic()
    with pytest.raises(FetchError, match=r"No answer came within 0\.5 s"):
        await fetch(web, "drip")
    assert time.monotonic() - begun < 2 * PATIENCE


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("double_bomb", "packed"),
        ("brotli", "packed"),
        ("false_length", "broke off"),
        ("long_header", "broke off"),
        ("broken", "broke off"),
        ("error", "answers with 500"),
        ("nowhere", "answers with 404"),
    ],
)
async def test_fetch_error_names_the_reason(web, path, why):
    with pytest.raises(FetchError, match=why) as raised:
        await fetch(web, path)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "x",
        "file:///etc/passwd",
        "http://",
        "http://[",
        "http://a:99999/",
        "data:,x",
    ],
)
async def test_addresses_outside_the_web_are_refused(address):
    with pytest.raises(FetchError):
        await fetching.fetch_page(address)


async def test_password_and_fragment_are_not_sent(web):
    with_user = web.origin.replace("//", "//alice:secret@")
    found = await fetching.fetch_page(f"{with_user}/article#part")
    assert found.address == f"{web.origin}/article"
    assert web.seen == ["/article"]


async def test_a_server_that_is_not_there_is_said(web):
    with pytest.raises(FetchError, match="can't be reached"):
        await fetching.fetch_page("http://127.0.0.1:9/")
