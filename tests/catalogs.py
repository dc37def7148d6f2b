"""The strings of the sources, found without GNU gettext, and their catalogs."""

import io
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

from babel.messages import extract, mofile, pofile
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
CONTRIB = "chatsite/contrib"
# What Django's own command looks for, beside the words that Babel knows already.
KEYWORDS = {
    **extract.DEFAULT_KEYWORDS,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
PLACES = re.compile(r"%\((\w+)\)")
TAGS = re.compile(r"</?\w+[^>]*>")
TEMPLATE_CODE = re.compile(
    r"{% ?comment.*?endcomment ?%}|{% ?blocktrans.*?endblocktrans\w* ?%}"
    r"|{% block body_class %}.*?{% endblock body_class %}"
    r"|{%.*?%}|{{.*?}}|{#.*?#}",
    re.DOTALL,
)
# A tag that does not end a line of text.
INLINE = r"</?(?:a|abbr|b|bdi|code|del|em|ins|mark|q|small|span|strong|time)\b[^>]*>"
SHOWN_ATTRIBUTES = {"alt", "aria-label", "placeholder", "title"}


def python_files():
    packages = ("chatsite", "memory")
    return [path for name in packages for path in sorted((ROOT / name).rglob("*.py"))]


def templates():
    of_apps = (ROOT / "chatsite").rglob("templates/**/*.html")
    return sorted([*(ROOT / "templates").rglob("*.html"), *of_apps])


def mails():
    return sorted((ROOT / "chatsite").rglob("templates/**/*.txt"))


def strings_of(path):
    """(context, msgid) of every string that a file marks for translation."""
    source = path.read_text()
    if path.suffix in (".html", ".txt"):
        # Filler of any indentation is no Python.
        lines = templatize(source, origin=str(path)).splitlines()
        source = "\n".join(line.strip() for line in lines)
    found = extract.extract("python", io.BytesIO(source.encode()), KEYWORDS)
    return {key_of(message, context) for _, message, _, context in found}


def key_of(message, context=None):
    # Babel leaves that of a compiled one undecoded.
    context = context.decode() if isinstance(context, bytes) else context
    return context or "", texts(message)[0]


def owners():
    """Return the folders with a catalog: the site, and each extra with strings."""
    return sorted(marked())


@cache
def marked():
    """Return folder with a catalog -> every string of its sources -> one file of it."""
    found = {}
    for path in [*python_files(), *templates(), *mails()]:
        name = path.relative_to(ROOT)
        owner = Path(*name.parts[:3]) if name.is_relative_to(CONTRIB) else Path()
        for key in strings_of(path):
            found.setdefault(str(owner), {})[key] = str(name)
    return found


def locales():
    return sorted(path.name for path in (ROOT / "locale").iterdir())


def catalog(owner, locale, suffix):
    path = ROOT / owner / "locale" / locale / "LC_MESSAGES" / f"django.{suffix}"
    read = {"po": pofile.read_po, "mo": mofile.read_mo}[suffix]
    with path.open("rb") as file:
        return {key_of(m.id, m.context): m for m in read(file) if m.id}


def texts(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def shape(text):
    """Return the parts that a translation must share with its original."""
    return sorted(set(PLACES.findall(text))), sorted(TAGS.findall(text))


class Words(HTMLParser):
    """The visible and spoken words of a page; `skip`: classes of elements that show
    texts of users and models."""

    VOID = {"area", "br", "hr", "img", "input", "link", "meta", "path", "rect", "line"}

    def __init__(self, html, skip=()):
        super().__init__()
        self.skip, self.found, self.open = set(skip), [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        classes = set(values.get("class", "").split())
        if tag not in self.VOID:
            hidden = tag in ("script", "style", "template") or bool(classes & self.skip)
            self.open.append((tag, hidden))
        if not self._is_hidden():
            self.found += [v for n, v in values.items() if n in SHOWN_ATTRIBUTES]
            said = [v for n, v in values.items() if n.startswith("data-") and " " in v]
            # Several addresses are no words.
            self.found += [each for each in said if not each.startswith("/")]

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if data.strip() and not self._is_hidden():
            self.found.append(data.strip())

    def _is_hidden(self):
        return any(hidden for _, hidden in self.open)
