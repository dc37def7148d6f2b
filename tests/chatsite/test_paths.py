"""Decisions by the beginning of a path, and the targets of the URL map."""

import re

import pytest
from django.conf import settings

from chatsite.ops.entrances import find_entrance
from chatsite.ops.load import FOR_MACHINES
from chatsite.ops.open_paths import find_secret, hide_secrets, list_open, secret_paths
from tests.paths import (
    find_route,
    list_routes,
    read_by_nginx,
    read_by_site,
    write_otherwise,
)
from tests.servers import ROOT

NGINX = (ROOT / "deploy" / "nginx" / "windowpane.conf").read_text()
LOCATIONS = re.findall(r"(?m)^ {4}location (?:(=|~|\^~) )?(\S+) \{", NGINX)
# One for people who are kept to a network, as docs/deploy.md has it.
LOCATIONS.append(("", "/admin/"))


def find_location(path):
    """Return the location by nginx's rules: an exact one, the longest beginning, and an
    expression.
    """
    exact = [start for kind, start in LOCATIONS if kind == "=" and path == start]
    starts = [(kind, start) for kind, start in LOCATIONS if kind in ("", "^~")]
    fits = [each for each in starts if path.startswith(each[1])]
    kind, longest = max(fits, key=lambda each: len(each[1]))
    found = [each for mark, each in LOCATIONS if mark == "~" and re.search(each, path)]
    return (exact or (found if kind != "^~" else []) or [longest])[0]


def is_below(route, starts):
    return f"/{route}".startswith(tuple(starts))


def disagreements(raw):
    """Return the paths for which a decision by path differs from one by route."""
    path, seen = read_by_site(raw), read_by_nginx(raw)
    if (route := find_route(path)) is None:
        return []
    if "(?P<url>" in route:  # the admin's own page for what is none of its pages
        return ["nginx"] if seen != path else []
    pairs = {
        "nginx": (seen, path),
        "location": (find_location(seen), find_location(f"/{route.strip('$')}")),
        "entrance": (find_entrance(path), find_entrance(f"/{route}")),
        "open": (bool(find_secret(path)), is_below(route, list_open())),
        "machines": (path in FOR_MACHINES, f"/{route}" in FOR_MACHINES),
        "log": (hide_secrets(path) != path, is_below(route, secret_paths)),
        "static": (path.startswith(settings.STATIC_URL), False),
        "wires": (bool(find_entrance(path).answer), False),
    }
    return [name for name, (one, other) in pairs.items() if one != other]


def test_map_has_an_address_for_every_route():
    routes = list(list_routes())
    assert len(routes) > 200
    assert [path for _, path in routes if find_route(path) is None] == []


def test_decisions_by_path_agree_with_the_url_map():
    tried, wrong = 0, {}
    for _, path in list_routes():
        for raw in write_otherwise(path):
            tried += 1
            if found := disagreements(raw):
                wrong[raw] = found
    assert tried > 10_000
    assert wrong == {}


@pytest.mark.parametrize(
    "path", ["/./", "/c/../", "//", "/admin//", "/..", "/admin/.", "//evil.example/"]
)
def test_path_that_a_proxy_reads_otherwise_leads_nowhere(client, path):
    answer = client.get("/", PATH_INFO=path)
    assert answer.status_code == 404
    assert "Location" not in answer
