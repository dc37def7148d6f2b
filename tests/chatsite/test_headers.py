"""Headers that a client sends: what the site and its libraries read of them, and what
they change under daphne."""

import re
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest

from chatsite.headers import SETTERS, Setter, clean_scope
from tests.forged import ALL, FORGED, PATHS, SOME_PATHS, observe
from tests.patience import wait_for
from tests.servers import ROOT

from .test_asgi import ann, ask, ask_for_link, mails, site  # noqa: F401

LIBRARIES = ("daphne", "django", "channels", "django_htmx", "whitenoise", "axes", "csp")
LIBRARIES += ("allauth",)
READ = (
    re.compile(
        r"""\b(?:META|request_headers)(?:\.get\(|\[)["'](?:HTTP_)?(\w*[A-Z])["']"""
    ),
    re.compile(r"""request\.headers(?:\.get\(|\[)["']([\w-]+)"""),
    re.compile(r"""_get_header_value\(["']([\w-]+)"""),
    re.compile(r"""(?:hasHeader|getRawHeaders|removeHeader)\(b["']([\w-]+)"""),
    re.compile(r"""\bname(?:\.lower\(\))? == b["']([\w-]+)"""),
)
# Of META, what is no header: the connection, the request line, and Django's own notes.
NONE = {"remote-addr", "remote-host", "remote-port", "server-name", "server-port"}
NONE |= {"request-method", "query-string", "path-info", "script-name", "script-url"}
NONE |= {"csrf-cookie", "csrf-cookie-needs-update", "redirect-url"}


def headers_that_are_read():
    """{name: a file} of all libraries, and of the site."""
    folders = [Path(find_spec(name).origin).parent for name in LIBRARIES]
    for path in chain.from_iterable(
        folder.rglob("*.py") for folder in [*folders, ROOT / "chatsite"]
    ):
        if not {"tests", "test", "locale", "providers", "idp"} & set(path.parts):
            text = path.read_text(errors="replace")
            for name in chain.from_iterable(each.findall(text) for each in READ):
                yield name.lower().replace("_", "-"), f"{path.parent.name}/{path.name}"


def test_table_has_every_header_that_is_read():
    found = dict(headers_that_are_read())
    assert found.keys() >= {"daphne-root-path", "x-forwarded-host", "hx-current-url"}
    known = {name.decode() for name in SETTERS} | NONE
    assert {name: at for name, at in found.items() if name not in known} == {}


def clean(*pairs):
    return clean_scope({"type": "http", "root_path": "/x", "headers": pairs})


def test_entrance_keeps_what_a_proxy_says_behind_one_alone(settings):
    pairs = [(b"host", b"x"), (b"x-forwarded-for", b"203.0.113.9"), (b"x-y", b"z")]
    assert clean(*pairs)["headers"] == [pairs[0], pairs[2]]
    settings.BEHIND_PROXY = True
    assert clean(*pairs)["headers"] == pairs
    assert clean(*pairs)["root_path"] == ""


@pytest.mark.parametrize("name", ["TRUSTED_USER_HEADER", "GATEWAY_USER_HEADER"])
def test_entrance_keeps_the_header_that_a_setting_names(settings, name):
    pairs = [(b"remote-user", b"ann"), (b"x-forwarded-user", b"ann")]
    assert clean(*pairs)["headers"] == []
    setattr(settings, name, "Remote-User")
    assert clean(*pairs)["headers"] == pairs[:1]


def test_two_cookies_are_read_as_one_by_all(rf):
    pairs = [(b"cookie", b"sessionid=a; q="), (b"host", b"x"), (b"cookie", b"q=b")]
    assert clean(*pairs)["headers"] == [pairs[1], (b"cookie", b"sessionid=a; q=; q=b")]


@pytest.mark.server
def test_stranger_changes_no_link_redirect_or_policy(site, ann):  # noqa: F811
    cookies = "; ".join(f"{each.name}={each.value}" for each in ann.cookies)

    def seen(headers, paths=PATHS):
        return observe(lambda path, sent: ask(site, path, sent), headers, paths)

    for own in ({}, {"Cookie": cookies}):
        plain = seen(own)
        assert plain["/"][0] == (200 if own else 302)
        assert seen({**own, **ALL}) == plain
        # One could hide another.
        some = {path: plain[path] for path in SOME_PATHS}
        for forged in FORGED:
            assert seen({**own, **forged}, SOME_PATHS) == some


@pytest.mark.server
def test_stranger_changes_no_mail(site, ann, mails):  # noqa: F811
    words = {name.decode() for name, by in SETTERS.items() if by == Setter.CLIENT}
    own = {name: "https://evil.example/" for name in words if name.startswith("hx-")}
    own |= {"Referer": f"{site.url}/x", "X-Requested-With": "XMLHttpRequest"}
    # The last one is a name of the site, too, but not the one that links begin with.
    for count, headers in enumerate([ALL, own, {"Host": "testserver"}], 1):
        assert ask_for_link(site, "ann@example.org", headers) == 302
        wait_for(lambda count=count: len(mails()) == count, what="the mail")
    assert {link.partition("/accounts/")[0] for link in mails()} == {site.url}
