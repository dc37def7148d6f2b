"""The environment as typed settings, each with its bounds and its default.

Values that cannot be used are reported for all settings at once, before anything
starts.
"""

import builtins
import difflib
import ipaddress
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import environ
from django.core.exceptions import ImproperlyConfigured

TRUE = ("true", "on", "ok", "y", "yes", "1")
FALSE = ("false", "off", "n", "no", "0")
# More than any setting needs, and what databases and clocks can still take.
MOST = 1_000_000_000
# Seconds, where none would end what has just begun.
SHORTEST = 0.1
SHOWN_CHARS = 60
# Straight ones, and those that word processors make of them.
QUOTES = ("'", '"', "\u2018", "\u2019", "\u201c", "\u201d")
FILE_SCHEMES = ("sqlite", "unix")
# As browsers write it: in lower case and without the scheme's own port.
ORIGIN = re.compile(
    r"(http(?!.*:80$)|https(?!.*:443$))://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?"
)
SERVER = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
# Variables that other programs read from the same file.
FOREIGN = re.compile(
    r"(OTEL|LANGSMITH|LANGCHAIN|OPENAI_ORG|SSL_CERT|POSTGRES|PG|UVICORN|PYTHON|COMPOSE)"
    r"\w*|\w*_PROXY|HOST|PORT|SEAL_KEY|WEB_CONCURRENCY|DJANGO_SETTINGS_MODULE",
    re.IGNORECASE,
)
# Quotes, spaces and line ends come with a copied key, and no header can have them.
KEY = re.compile(r"[!-~]*")
KEY_ALLOWED = "the key alone, in ASCII, without spaces or line ends"
# How like a setting's name another one is that is taken for a slip.
ALIKE = 0.85

# The methods below are named for the types that they read.
Text: TypeAlias = builtins.str
Whole: TypeAlias = builtins.int
Number: TypeAlias = builtins.float
Flag: TypeAlias = builtins.bool
Words: TypeAlias = builtins.list[builtins.str]


class SettingsError(ImproperlyConfigured):
    """All that is wrong with the settings, one sentence a line."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as it was read, and what else it could be."""

    value: Any
    default: Any
    allowed: Text
    parse: Callable[[Text], Any]
    is_secret: Flag


class SiteEnv:
    """A reader of settings that remembers them.

    A value that cannot be used adds a sentence to the problems, and its setting gets
    the default, so that all others are read.
    """

    def __init__(self) -> None:
        self.settings: dict[Text, Setting] = {}
        self.problems: list[Text] = []
        # The file that was read, and what the environment had not already.
        self.file: Path | None = None
        self.names_of_file: frozenset[Text] = frozenset()
        # What else reads variables, such as keys that a file names.
        self.names_of_others: set[Text] = set()

    def read_file(self, default: Path) -> None:
        """Take what the environment lacks from ENV_FILE; empty: from no file."""
        name = self.str("ENV_FILE", default=Text(default))
        if name and Path(name).is_file():
            before = frozenset(os.environ)
            try:
                # Editors of Windows begin a file with a byte order mark.
                environ.Env.read_env(name, encoding="utf-8-sig")
            except UnicodeDecodeError:
                self.problems.append(
                    f"ENV_FILE, {name}, is not UTF-8; save it with this encoding."
                )
            self.file = Path(name)
            self.names_of_file = frozenset(os.environ) - before
        elif name and "ENV_FILE" in os.environ:
            self.add_problem("ENV_FILE", "the path of a file that there is, or nothing")

    def str(self, name: Text, default: Text = "", *, is_secret: Flag = False) -> Text:
        return self._read(name, default, "any text", Text, is_secret=is_secret)

    def list(
        self, name: Text, default: Sequence[Text] = (), *, is_secret: Flag = False
    ) -> Words:
        allowed, words = "words, separated by commas", builtins.list(default)
        return self._read(name, words, allowed, _parse_words, is_secret=is_secret)

    def provider_key(self, name: Text) -> Text:
        """Return the key of a provider, as it goes into a header; "" without one."""
        return self._read(
            name, "", KEY_ALLOWED, partial(_parse_one, is_key), is_secret=True
        )

    def bool(self, name: Text, *, default: Flag) -> Flag:
        return self._read(name, default, "true or false", _parse_flag)

    def one_of(self, name: Text, *words: Text) -> Text:
        """Return one of these words; the first if the setting is missing."""
        allowed = f"{', '.join(words[:-1])} or {words[-1]}"
        parse = partial(_parse_one, words.__contains__)
        return self._read(name, words[0], allowed, parse)

    def some_of(self, name: Text, words: Iterable[Text]) -> Words:
        """Return the words that the setting names, in their order; all for "all"."""
        known = [*words]
        allowed = f"all, or some of {', '.join(known)}, separated by commas"
        return self._read(name, [], allowed, partial(_parse_some_of, known))

    def int(
        self, name: Text, *, default: Whole, least: Whole = 0, most: Whole = MOST
    ) -> Whole:
        allowed = f"a whole number from {least:,} to {most:,}"
        return self._read(
            name, default, allowed, partial(_parse_bounded, Whole, least, most)
        )

    def float(
        self, name: Text, *, default: Number, least: Number = 0, most: Number = MOST
    ) -> Number:
        allowed = f"a number from {least:,} to {most:,}"
        return self._read(
            name, default, allowed, partial(_parse_bounded, Number, least, most)
        )

    def time_limit(self, name: Text, *, default: Number) -> Number:
        """Return seconds, at least SHORTEST, for what cannot be done in no time."""
        return self.float(name, default=default, least=SHORTEST)

    def origin_list(self, name: Text) -> Words:
        allowed = (
            "full origins as browsers write them, such as https://chat.example.com: in "
            "lower case, without a path and without the scheme's own port"
        )
        return self._read(name, [], allowed, partial(_parse_each, ORIGIN.fullmatch))

    def server_list(self, name: Text) -> Words:
        allowed = "servers with their ports, such as redis-1:26379,redis-2:26379"
        return self._read(name, [], allowed, partial(_parse_each, SERVER.fullmatch))

    def network_list(self, name: Text) -> Words:
        allowed = "networks or addresses, such as 10.1.2.0/24, separated by commas"
        return self._read(name, [], allowed, partial(_parse_each, ipaddress.ip_network))

    def model_temperature(self, name: Text, *, default: Number | None) -> Number | None:
        """Return the temperature of a model; None is not sent."""
        allowed = "a number from 0 to 2, or nothing"
        parse = partial(_parse_bounded, Number, 0, 2)
        return self._read(
            name, default, allowed, lambda text: parse(text) if text else None
        )

    def time_zone(self, name: Text, *, default: Text) -> Text:
        allowed = "the name of a time zone, such as Europe/Paris or Asia/Shanghai"
        return self._read(name, default, allowed, _parse_time_zone)

    def server_url(
        self, name: Text, default: Text, *schemes: Text, example: Text
    ) -> Text:
        """Return the address of a server, which may hold a password, or the default."""
        parse = partial(parse_address, schemes)
        allowed = f"an address like {example}"
        if "@" in os.environ.get(name, ""):
            allowed += ", where a user or password has %23 for #, %2F for /, %3F for ?"
        value = self._read(name, "", allowed, parse, is_secret=True)
        return value or default

    def http_url(self, name: Text, example: Text) -> Text:
        return self.server_url(name, "", "http", "https", example=example)

    def add_problem(
        self, name: Text, allowed: Text, *, is_secret: Flag = False
    ) -> None:
        value = os.environ.get(name, "")
        given = "can't be used" if is_secret else f"is {value[:SHOWN_CHARS]!r}"
        quoted = ", without quotes" * value.startswith(QUOTES)
        self.problems.append(f"{name} {given}; use {allowed}{quoted}.")

    def _read(
        self,
        name: Text,
        default: Any,
        allowed: Text,
        parse: Callable[[Text], Any],
        *,
        is_secret: Flag = False,
    ) -> Any:
        value = default
        if name in os.environ:
            try:
                value = parse(os.environ[name])
            except ValueError:
                self.add_problem(name, allowed, is_secret=is_secret)
        self.settings[name] = Setting(value, default, allowed, parse, is_secret)
        return value

    def raise_problems(self) -> None:
        if self.problems:
            raise SettingsError("\n".join(self.problems))

    def find_source(self, name: Text) -> Text:
        """Return the source of a setting's value: "file", "environment" or ""."""
        if name in self.names_of_file:
            return "file"
        return "environment" if name in os.environ else ""

    def find_slips(self) -> Iterator[Text]:
        """Yield a sentence for each name that is not a setting.

        All names of the file count; others only if they are similar to a setting's
        name.
        """
        for name in sorted({*os.environ} - {*self.settings}):
            if FOREIGN.fullmatch(name) or name in self.names_of_others:
                continue
            near = difflib.get_close_matches(name, self.settings, 1, ALIKE)
            if near or name in self.names_of_file:
                meant = f"; did you mean {near[0]}?" if near else "."
                yield f"{name} is no setting of the site{meant}"


NOT_ON_WINDOWS = (
    "Windowpane runs on Linux and macOS. On Windows, install WSL (wsl --install), open "
    "its terminal and run make there; the browser of Windows opens the same address."
)


def load_settings() -> None:
    """Read the settings; end this process with a sentence for each invalid one.

    A traceback would bury these sentences.
    """
    if sys.platform == "win32":
        sys.exit(NOT_ON_WINDOWS)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
    from django.conf import settings

    try:
        settings.INSTALLED_APPS  # noqa: B018
    except SettingsError as error:
        sys.exit(Text(error))


def _parse_words(text: Text) -> Words:
    return [word for part in text.split(",") if (word := part.strip())]


def _parse_one(fits: Callable[[Text], object], text: Text) -> Text:
    if not fits(text):
        raise ValueError(text)
    return text


def _parse_each(fits: Callable[[Text], object], text: Text) -> Words:
    return [_parse_one(fits, word) for word in _parse_words(text)]


def is_key(text: Text) -> Flag:
    return bool(KEY.fullmatch(text)) and not text.startswith(QUOTES)


def _parse_flag(text: Text) -> Flag:
    word = text.strip().lower()
    if word not in (*TRUE, *FALSE):
        raise ValueError(word)
    return word in TRUE


def _parse_some_of(known: Words, text: Text) -> Words:
    named = known if text.strip() == "all" else _parse_words(text)
    if not {*named} <= {*known}:
        raise ValueError(text)
    return [word for word in known if word in named]


def _parse_bounded(
    kind: Callable[[Text], Number], least: Number, most: Number, text: Text
) -> Number:
    value = kind(text)
    # Not a number is neither less nor more than another.
    if not math.isfinite(value) or not least <= value <= most:
        raise ValueError(text)
    return value


def _parse_time_zone(text: Text) -> Text:
    try:
        ZoneInfo(text)
    except (KeyError, OSError):
        raise ValueError(text) from None
    return text


def parse_address(schemes: Sequence[Text], text: Text) -> Text:
    text = text.strip()
    scheme, colon, _ = text.partition("://")
    if text and (not colon or scheme not in schemes):
        raise ValueError("no such scheme")
    if scheme not in FILE_SCHEMES:
        parts = urlsplit(text)
        # Of a password with one of these signs, only its beginning would be read.
        if "#" in text or "@" in parts.path + parts.query * ("@" not in parts.netloc):
            raise ValueError("raw signs in a password")
        # A port that is none raises as it is read. A database can be on a local socket.
        if parts.port == 0 or (scheme.startswith("http") and not parts.hostname):
            raise ValueError("no server")
    return text
