"""Every string that people see is in every catalog, translated and compiled."""

import ast
import os
import re
import subprocess
import sys
from functools import cache

import pytest

from .catalogs import (
    INLINE,
    ROOT,
    TEMPLATE_CODE,
    Words,
    catalog,
    key_of,
    locales,
    marked,
    owners,
    python_files,
    shape,
    strings_of,
    templates,
    texts,
)

# In a template these stand as they are, in every language.
NAMES = {
    *("Windowpane", "Claude", "Code", "Codex", "transcript.json", "summaries.json"),
    *("sha256", "body_sha256", "SHA-256"),
}
TELLING = {
    *("ActionError", "CommandError", "ReplacedError", "TextError", "ValidationError"),
    *("EmptySummary", "OverlongSummary", "RefusedSummary", "TruncatedSummary"),
    *("ImportFileError", "ImportItemError", "Notice", "add_error", "success"),
}
LABELS = {"description", "help_text", "label", "verbose_name"}
# A translated sentence, a space that a template adds, and more on the same line.
SPACED = re.compile(
    r"[.:;?!](?:[\"'] %}|\s*{% endblocktranslate %})"
    rf"(?:{INLINE}|{{% (?:end|if |with )[^%]*%}})*\s"
    rf"(?:{INLINE}|{{% (?!el|plural)[^%]*%}}|\s)*?"
    r"(?:{{|{% (?:block)?translate |[^\s<{])"
)
KEYS = {"Ctrl", "Enter", "Shift", "Esc", "Alt", "Alt+M"}


@cache
def nodes(path):
    return list(ast.walk(ast.parse(path.read_text())))


@pytest.fixture
def strings(owner):
    return marked()[owner]


def test_strings_of_every_kind_are_found(tmp_path):
    python = tmp_path / "one.py"
    python.write_text(
        '_("a" "b")\ngettext_noop("c")\nngettext("d", "ds", 2)\npgettext("x", "e")\n'
    )
    template = tmp_path / "one.html"
    template.write_text(
        '{% load i18n %}<p title="{% translate "f" %}">\n    {% blocktranslate count '
        "n=rows %}g {{ n }}{% plural %}gs {{ n }}{% endblocktranslate %}\n"
        '  {{ x|default:_("h") }}</p>'
    )
    assert strings_of(python) == {("", "ab"), ("", "c"), ("", "d"), ("x", "e")}
    assert strings_of(template) == {("", "f"), ("", "g %(n)s"), ("", "h")}


def test_languages_of_the_settings_have_a_locale(settings):
    assert "zh_Hans" in locales()
    offered = {code for code, _ in settings.LANGUAGES} - {settings.LANGUAGE_CODE}
    assert {locale.replace("_", "-").lower() for locale in locales()} == offered


def test_extras_that_are_off_bring_no_catalog():
    code = "print(*settings.LOCALE_PATHS, sep='\\n')"
    script = f"from django.conf import settings; {code}"
    environ = {**os.environ, "DEBUG": "true", "EXTRAS": "web"}
    environ["DJANGO_SETTINGS_MODULE"] = "chatsite.settings"
    command = [sys.executable, "-c", script]
    paths = subprocess.check_output(command, cwd=ROOT, env=environ, text=True).split()
    assert paths == [f"{ROOT}/locale", f"{ROOT}/chatsite/contrib/web/locale"]


@pytest.mark.parametrize("locale", locales())
def test_catalogs_translate_a_string_alike(locale):
    """Django merges the catalogs: the site's word would replace that of an extra."""
    site = catalog(".", locale, "po")
    assert [
        (owner, key)
        for owner in owners()
        for key, row in catalog(owner, locale, "po").items()
        if key in site and texts(site[key].string) != texts(row.string)
    ] == []


@pytest.mark.parametrize("locale", locales())
@pytest.mark.parametrize("owner", owners())
class TestCatalog:
    """`make messages` adds what is missing; it has to be translated by hand."""

    def test_catalog_has_every_string_of_the_sources(self, owner, locale, strings):
        rows = catalog(owner, locale, "po")
        done = {key for key, row in rows.items() if all(texts(row.string))}
        missing = {key[1]: path for key, path in strings.items() if key not in done}
        assert missing == {}

    def test_catalog_has_no_other_strings(self, owner, locale, strings):
        assert [k for k in catalog(owner, locale, "po") if k not in strings] == []

    def test_catalog_has_no_fuzzy_entries(self, owner, locale):
        rows = catalog(owner, locale, "po")
        assert [key for key, row in rows.items() if row.fuzzy] == []

    def test_places_and_tags_are_those_of_the_original(self, owner, locale):
        wrong = []
        for row in catalog(owner, locale, "po").values():
            # Of two forms the second one is for all numbers but one.
            wanted = shape(texts(row.id)[-1])
            wrong += [text for text in texts(row.string) if shape(text) != wanted]
        assert wrong == []

    def test_compiled_catalog_is_up_to_date(self, owner, locale):
        written, compiled = (
            {k: texts(row.string) for k, row in catalog(owner, locale, kind).items()}
            for kind in ("po", "mo")
        )
        assert compiled == written


def test_strings_are_filled_in_after_the_lookup():
    markers = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "pgettext"}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in python_files()
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in markers
        and any(isinstance(arg, (ast.JoinedStr, ast.BinOp)) for arg in node.args[:2])
    ]
    assert found == []


def test_user_facing_texts_are_marked_for_translation():
    """Texts of errors, notices and labels are checked; commands speak English."""
    found = [
        f"{path.relative_to(ROOT)}:{value.lineno} {value.value}"
        for path in python_files()
        if not {"management", "migrations", "engine", "agents"} & set(path.parts)
        for node in nodes(path)
        if isinstance(node, ast.Call)
        for value in shown_texts(node)
        if isinstance(value, ast.Constant) and " " in str(value.value)
    ]
    assert found == []


def shown_texts(call):
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name in TELLING:
        yield from call.args
    yield from (each.value for each in call.keywords if each.arg in LABELS)


def test_templates_have_no_words_outside_of_the_catalogs():
    found = {
        str(path.relative_to(ROOT)): words
        for path in templates()
        if (words := bare_words(path) - NAMES - KEYS)
    }
    assert found == {}


def test_templates_add_no_space_to_a_sentence():
    """{% space %} adds it in the languages that have one there."""
    found = {
        str(path.relative_to(ROOT)): spaced
        for path in templates()
        if (spaced := [each[0] for each in SPACED.finditer(path.read_text())])
    }
    assert found == {}


def bare_words(path):
    """Words of a template itself; those of commands are no words of a language."""
    shown = Words(TEMPLATE_CODE.sub("", path.read_text()), skip=["command"]).found
    words = {word.strip(" ·:…") for text in shown for word in text.split()}
    return {word for word in words if word.isascii() and is_word(word)}


def is_word(text):
    return sum(char.isalpha() for char in text) > 2


def test_a_string_is_looked_up_by_its_context():
    assert key_of(("one", "many"), "x") == ("x", "one")
