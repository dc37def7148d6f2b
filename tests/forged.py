"""Headers that a stranger makes up, and what a site answers to them."""

import re

from chatsite.headers import SETTERS, Setter

EVIL = "evil.example"
# By what the reader of such a header would do with it.
VALUES = {
    "daphne-root-path": f"@{EVIL}",
    "x-script-name": "/x",
    "x-forwarded-prefix": "/x",
    "x-original-url": "/metrics",
    "x-rewrite-url": "/metrics",
    "forwarded": f"for=203.0.113.9;host={EVIL};proto=https",
    "x-forwarded-for": "203.0.113.9",
    "x-forwarded-port": "1",
    "x-forwarded-proto": "https",
    "x-forwarded-scheme": "https",
    "x-forwarded-ssl": "on",
    "x-http-method": "DELETE",
    "x-http-method-override": "DELETE",
    "x-method-override": "DELETE",
}
NAMES = sorted(name.decode() for name, by in SETTERS.items() if by != Setter.CLIENT)
# Each by itself, and all at once.
FORGED = [{name: VALUES.get(name, EVIL)} for name in NAMES]
ALL = {name: value for each in FORGED for name, value in each.items()}
PATHS = ["/", "/c", "/account/", "/accounts/login/?next=/c/", "/accounts/forgotten/"]
PATHS += ["/admin/", "/nope", "/v1/models", "/mcp", "/metrics", "/healthz"]
PATHS += ["/x/accounts/login/", "/static/css/base.css"]
SOME_PATHS = ["/account/", "/accounts/login/?next=/c/"]
LINK = re.compile(r'(?:href|src|action|content|data-[\w-]+|hx-[\w-]+)="([^"]*)"')
TOKEN = re.compile(r"\b\w{64}\b")


def observe(ask, headers, paths=PATHS):
    """{path: what the answer leads to, and what a browser lets it do}, by
    `ask(path, headers)` -> (status, headers, text)."""
    found = {}
    for path in paths:
        status, got, text = ask(path, headers)
        links = [TOKEN.sub("", link) for link in LINK.findall(text)]
        # Each process has its directives in an order of its own.
        policy = sorted(got.get("Content-Security-Policy", "").split("; "))
        found[path] = (status, got.get("Location"), policy, got.get("Allow"), links)
    return found
