"""Each entrance of the site says what limits it; no URL or application lacks one."""

import re
import uuid
from importlib import import_module

import pytest
from django.conf import settings
from django.test import Client
from django.urls import get_resolver

from chatsite.live.routing import websocket_urlpatterns
from chatsite.ops import open_paths
from chatsite.ops.entrances import PAGES, Slot, entrances, find_entrance, list_starts

from ..scenes import signed_in

CELLS = ("pace", "tokens", "access_log")
# Values for the parameters of URLs.
VALUES = {"uuid": str(uuid.UUID(int=1)), "token": "t" * 32, "mailed_token": "t" * 32}
# What a signed-out browser is led away from.
ELSEWHERE = ("/accounts/login/", "/admin/login/")


def resolve(path):
    """Return what a dotted path names, also inside of a class."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(path)


@pytest.mark.parametrize("entrance", [PAGES, *entrances], ids=lambda e: e.starts[0])
def test_cells_name_code_or_a_reason(entrance):
    assert entrance.slot in Slot
    assert entrance.max_bytes() > 0
    for cell in (getattr(entrance, name) for name in CELLS):
        kind, _, reason = cell.partition("none: ")
        assert len(reason.split()) > 3 if not kind else callable(resolve(cell))


def test_entrances_share_no_beginning():
    starts = [start for each in entrances for start in each.starts]
    assert len(starts) == len({*starts})


def list_urls(resolver, before=""):
    """Yield an address for each URL pattern."""
    for each in resolver.url_patterns:
        pattern = before + str(each.pattern)
        if hasattr(each, "url_patterns"):
            yield from list_urls(each, pattern)
        elif not pattern.startswith("^") and "(?P" not in pattern:
            path = re.sub(r"<(?:(\w+):)?\w+>", lambda m: VALUES.get(m[1], "1"), pattern)
            yield f"/{path}"


def is_private(client, path):
    """Return whether a signed-out browser is refused, whatever it does there."""
    answers = [client.get(path), client.post(path)]
    return all(
        answer.status_code in (401, 403, 404, 405)
        or answer.headers.get("Location", "").startswith(ELSEWHERE)
        for answer in answers
    )


def test_public_urls_have_an_entrance_of_their_own(db):
    client = Client()
    paths = sorted({*list_urls(get_resolver())})
    assert len(paths) > 300
    public = [path for path in paths if not is_private(client, path)]
    assert "/accounts/login/" in public
    assert [path for path in public if find_entrance(path) is PAGES] == []


def test_head_is_answered_wherever_get_is(alice):
    client = signed_in(alice)
    paths = [p for p in sorted({*list_urls(get_resolver())}) if "/admin/" not in p]
    got = {path: client.get(path).status_code for path in paths}
    answered = [path for path, status in got.items() if status == 200]
    assert {"/", "/healthz", "/readyz"} <= {*answered}
    heads = {path: client.head(path) for path in paths if got[path] != 405}
    assert [path for path, head in heads.items() if head.status_code == 405] == []
    assert all(heads[path].status_code == 200 for path in answered)
    assert all(head.content == b"" for head in heads.values() if not head.streaming)


def test_applications_and_sockets_have_an_entrance_of_their_own():
    sockets = [str(each.pattern) for each in websocket_urlpatterns]
    applications = [start for e in entrances if e.answer for start in e.starts]
    starts = [*applications, *(f"/{each}" for each in sockets if each)]
    assert len(starts) > 2
    assert [start for start in starts if find_entrance(start) is PAGES] == []


def test_slots_are_those_of_the_paths():
    assert list_starts(Slot.LINK) == open_paths.list_open()
    for path in ("/accounts/login/", "/admin/login/", "/accounts/signup/"):
        assert find_entrance(path).slot is Slot.PASSWORD
    for path in ("/", "/c/", "/admin/", "/admin/memory/", "/admin/loginx/"):
        assert find_entrance(path).slot is Slot.SESSION


def test_every_cell_that_shows_texts_of_others_names_the_access_log():
    for start in ("/admin/", "/mcp", "/v1/conversations/", "/v1/responses/"):
        assert "record_" in find_entrance(start).access_log, start


def test_static_files_are_public():
    assert find_entrance(f"{settings.STATIC_URL}js/page.js") is not PAGES
