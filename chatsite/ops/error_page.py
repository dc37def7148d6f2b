"""The page of an error under DEBUG: Django's, without the secrets of this site.

Django hides settings by their names. A password inside an address, or in a variable of
the code that failed, has no such name: here the secrets themselves are looked for.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.conf import settings
from django.utils.html import escape
from django.views import debug

HIDDEN = "********"
# An address whose scheme was forgotten keeps its password as secret as any.
WITHOUT_SCHEME = re.compile(r"[^\s/@:]*:[^\s/@]*@[^\s@]+$")
SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)


class ExceptionReporter(debug.ExceptionReporter):
    def get_traceback_html(self) -> str:
        return hide_secrets(super().get_traceback_html())

    def get_traceback_text(self) -> str:
        return hide_secrets(super().get_traceback_text())


def hide_secrets(text: str) -> str:
    # The longest first: one can be part of another.
    for secret in sorted(list_secrets(), key=len, reverse=True):
        for shown in {secret, repr(secret)[1:-1]}:
            text = text.replace(shown, HIDDEN).replace(escape(shown), HIDDEN)
    return text


def list_secrets() -> set[str]:
    """Return the secrets of the settings, by their names or as a part of an address."""
    found: set[str] = set()
    for name in filter(str.isupper, dir(settings)):
        found.update(_secrets_in(name, getattr(settings, name)))
    for each in settings.PROVIDERS:
        found.update([each.secret, *_secrets_in("", each.base_url)])
        found.update(each.headers.values())
    return found - {""}


def _secrets_in(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _secrets_in(str(key), inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secrets_in(name, inner)
    elif isinstance(value, str):
        value = str(value)  # one of an app can be lazy
        if SECRET_NAME.search(name):
            yield value
        elif "://" in value or WITHOUT_SCHEME.match(value):
            yield from _secrets_of_address(value if "://" in value else f"//{value}")


def _secrets_of_address(address: str) -> Iterator[str]:
    try:
        parts = urlsplit(address)
    except ValueError:
        # What is no address can hold a password all the same.
        yield address
        return
    yield from (parts.password or "", unquote(parts.password or ""))
    for name, value in parse_qsl(parts.query):
        if SECRET_NAME.search(name):
            yield value
