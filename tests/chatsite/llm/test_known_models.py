"""The table of models: the installed SDK agrees, and no page names one that ends."""

import re
import subprocess
from contextlib import suppress
from datetime import date
from pathlib import Path

import pytest
from langchain_openai.data._profiles import _PROFILES
from openai.types.shared import chat_model

from chatsite.llm import known_models, providers
from chatsite.llm.known_models import MODELS, SHUTDOWNS, find_shutdown
from tests.servers import ROOT

SETTINGS = (ROOT / "docs" / "settings.md").read_text()
# Names as OpenAI and Anthropic form them, but not the patterns of several.
NAME = re.compile(
    r"\b(?:gpt-\d|o[1-9]\b|claude-|chatgpt-|codex-)[\w.-]*\w(?![\w*-])|\bo[134]\b"
)
# Its rows, what was, what others have written, and translations of it.
LEFT_OUT = re.compile(
    r"^(?:tests/|locale/|vendor/|requirements/|CHANGELOG|chatsite/llm/known_models\.py"
    r"|deploy/package/CHANGELOG)"
)


def read_dates_of_sdk():
    """The days in the text of the installed SDK, by the names of models."""
    text = Path(chat_model.__file__).read_text().partition('"""Deprecated values:')[2]
    found = {}
    for item in text.split("\n- "):
        day = re.search(r"shutdown\s+date:\s+(\d{4}-\d\d-\d\d)", item)
        if day:
            names = re.findall(r'"([^"\s]+)"', item)
            found |= dict.fromkeys(names, date.fromisoformat(day[1]))
    return found


def test_ends_are_those_of_the_installed_sdk():
    told = read_dates_of_sdk()
    assert len(told) > 50
    recent = {name: day for name, day in told.items() if day >= known_models.SINCE}
    assert {name: find_shutdown(name) for name in recent} == recent
    own = [n for names in SHUTDOWNS.values() for n in names.split()]
    assert [n for n in own if n not in told and not n.startswith("claude-")] == []


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("gpt-4o-mini", date(2027, 1, 14)),
        ("gpt-4o-mini-2024-07-18", date(2027, 1, 14)),
        ("gpt-4o-2024-05-13", date(2026, 10, 23)),
        ("gpt-5.4-mini", None),
        ("gpt-4o-mini-of-our-own", None),
        ("", None),
    ],
)
def test_shutdown_is_known_of_a_name_and_its_dated_forms(name, day):
    assert find_shutdown(name) == day


def test_windows_are_those_of_the_installed_profiles():
    known = {name: row for name, row in MODELS.items() if name in _PROFILES}
    assert len(known) >= 2
    assert {name: _PROFILES[name]["max_input_tokens"] for name in known} == {
        name: row.window for name, row in known.items()
    }


def test_default_has_a_row_and_no_end_and_needs_no_more_than_a_name():
    default = known_models.DEFAULT_MODEL
    assert default in MODELS
    profile = _PROFILES[default]
    assert profile["temperature"]
    assert profile["tool_calling"]
    assert "reasoning_effort_default" not in profile


def test_prices_of_the_page_are_those_of_the_table():
    shown = re.findall(r'name = "([\w.-]+)"\n  prices = \{ (.+?) \}', SETTINGS)
    assert len(shown) >= 2
    for name, prices in shown:
        row = MODELS[name].prices
        assert prices == (
            f"input = {row.input:g}, cached = {row.cached:g}, output = {row.output:g}"
        )


def test_pages_and_code_name_only_models_that_last():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True
    )
    found = {}
    for name in filter(lambda n: not LEFT_OUT.match(n), listed.stdout.splitlines()):
        with suppress(UnicodeDecodeError, FileNotFoundError):
            named = NAME.findall((ROOT / name).read_text("utf-8"))
            found |= {each: name for each in named if find_shutdown(each)}
    assert found == {}
    assert NAME.findall("`openai:gpt-4o-mini`, o3 and gpt-4o*") == ["gpt-4o-mini", "o3"]


class TestChosenModels:
    @pytest.fixture(autouse=True)
    def at_openai(self, settings):
        settings.OPENAI_API_KEY = "sk-x"

    def test_default_model_has_no_end(self):
        assert providers.list_shutdowns() == []

    def test_chosen_models_are_listed_by_their_day(self, settings):
        settings.CHAT_MODEL, settings.SUMMARY_MODEL = "gpt-5.4-nano", "gpt-4o-mini"
        settings.CHAT_MODELS = ["gpt-5-mini", "gpt-5.4", "gpt-4o-mini"]
        assert providers.list_shutdowns() == [
            ("gpt-5-mini", date(2026, 12, 11)),
            ("gpt-4o-mini", date(2027, 1, 14)),
            ("gpt-5.4-nano", date(2027, 4, 1)),
        ]

    def test_model_of_another_server_has_no_known_end(self, settings):
        settings.OPENAI_BASE_URL = "http://127.0.0.1:1/v1"
        settings.CHAT_MODEL = "gpt-4o-mini"
        assert providers.list_shutdowns() == []

    def test_sentence_says_what_ends_and_when_and_what_to_do(self, settings):
        settings.CHAT_MODELS = ["gpt-4o-mini"]
        settings.SUMMARY_MODEL = "gpt-4o-mini"
        told = providers.explain_shutdown("gpt-4o-mini", date(2999, 1, 14))
        assert told == (
            "gpt-4o-mini is shut down by OpenAI on 2999-01-14, and its replies fail "
            "from then on: name another model in SUMMARY_MODEL, CHAT_MODELS, such as "
            "gpt-5.4-mini."
        )
        past = providers.explain_shutdown("gpt-4o-mini", date(2020, 1, 14))
        assert past.startswith("gpt-4o-mini was shut down by OpenAI on 2020-01-14, so ")
