"""All addresses of the URL map, and the ways to write them otherwise."""

import posixpath
import re
from urllib.parse import unquote

from django.urls import Resolver404, get_resolver, resolve

SAMPLES = {
    "uuid": "0b8f2c52-5d0f-4b7c-9a51-0d4c2f3e6a77",
    **{
        "slug": "pin",
        "token": "A" * 32,
        "mailed_token": "A" * 32,
        "path": "7",
        "str": "x",
    },
}


def list_routes(patterns=None, before=""):
    """(route, path) of every view."""
    for each in get_resolver().url_patterns if patterns is None else patterns:
        route = before + str(each.pattern)
        if hasattr(each, "url_patterns"):
            yield from list_routes(each.url_patterns, route)
        elif "?:" not in route:
            yield route, f"/{fill(route)}"


def fill(route):
    filled = re.sub(r"<(?:(\w+):)?\w+>", lambda m: SAMPLES.get(m[1], "3"), route)
    # The admin's own patterns: one of its apps, and what no other of them takes.
    filled = re.sub(r"\(\?P3?(?:<\w+>)?(\w+)[^)]*\)", r"\1", filled)
    return filled.replace("(?P3.*)", "x").replace("^", "").replace("$", "")


def find_route(path):
    """The route that a path leads to, or None."""
    try:
        found = resolve(path)
    except Resolver404:
        return None
    return None if "exception" in found.kwargs else found.route


def write_otherwise(path):
    """Paths that something before the site could take for this one, or this one for
    another."""
    yield from (
        path,
        path.upper(),
        path.rstrip("/"),
        path + "/",
        path + ".",
        path + "..",
    )
    yield from (
        f"{start}{path}" for start in ("/x", "/", "/.", "/x/..", "/%2e", "/%2F")
    )
    yield f"/x/%2e%2e{path}"
    parts = path.split("/")
    for at in range(1, len(parts)):
        head, part, tail = "/".join(parts[:at]), parts[at], "/".join(parts[at + 1 :])
        others = (f"{part};x", f"%{ord(part[0]):02x}{part[1:]}") if part else (";x",)
        others += (f"{part}/", f"./{part}", f"x/../{part}", f"{part}%2F..", f"{part}#")
        others += (f"{part}%00", f"{part}%3F", f"%2e%2e/{part}", f"..%2f{part}")
        yield from (f"{head}/{other}/{tail}" for other in others)
        yield f"{head}%2F{part}/{tail}"
        yield f"{head}/{part}/../../../../c/x/{tail}"


def read_by_site(raw):
    """Return the path as daphne gives it to the site."""
    return unquote(raw)


def read_by_nginx(raw):
    """Return the path by which nginx chooses a location, with merge_slashes."""
    path = unquote(raw.partition("#")[0])
    merged = re.sub("/+", "/", path)
    end = "/" if re.search(r"/\.{0,2}$", merged) and merged != "/" else ""
    return posixpath.normpath(merged).rstrip("/") + (end or "/" * (merged == "/"))
