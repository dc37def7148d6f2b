"""Each leaf app taken out: the site does all the rest, and shows no trace of it."""

import json
import re

import pytest
from django.conf import settings

from .clients import Person
from .servers import Site

pytestmark = [pytest.mark.server, pytest.mark.database("sqlite")]
# What no page, file or address may name without the leaf.
WORDS = {
    "chatsite.attachments": r"\battach(?:ed|ments?)?[ -]|\bpdf|upload",
    "chatsite.experiments": "experiment|another policy",
    "chatsite.feedback": "feedback|good reply|bad reply",
    "chatsite.importing": r"\bimport(?:s|ed|ing)?\b|export|download everything",
    "chatsite.labels": r'(?<![<\-/"])\blabels?\b',
    "chatsite.rules": r"\brules? that you|own rules|/rules/|memory-rule|_rules\b"
    r"|\"rules\": \[",
    "chatsite.tools": r"(?<!object-)(?<!user-)\btools?\b|\btool[ -]|consent|remind",
    "chatsite.sharing": r"\bshar(?:e[ds]?|ing)\b|revoke|<token",
}
TEXTS = ("Hello", "Where is Kyoto?", "How far is it?", "Thank you")


def test_each_leaf_has_its_words():
    assert set(WORDS) == set(settings.LEAVES)


@pytest.fixture
def site(tmp_path, leaf):
    env = {"DATABASE_URL": f"sqlite:///{tmp_path / 'db.sqlite3'}"}
    env |= {"DJANGO_SETTINGS_MODULE": "tests.without_leaf", "WITHOUT_LEAF": leaf}
    made = Site(env)
    made.manage("check", "--fail-level", "WARNING")
    made.manage("makemigrations", "--check", "--dry-run")
    made.manage("migrate", "--verbosity", "0")
    with made:
        yield made


@pytest.mark.parametrize("leaf", WORDS)
def test_the_site_works_without_it_and_shows_no_trace(site, leaf):
    alice = Person(site, "alice")
    with alice.chat(alice.create("langgraph")) as chat:
        ends = [chat.say(text)["state"] for text in TEXTS]
        chat.until("memory", state="folded")
    assert ends == ["done"] * len(TEXTS)
    printed = site.manage("shell", "--no-imports", "-c", SHOW)
    shown = json.loads(printed.splitlines()[-1])
    assert shown.pop("summaries")
    assert shown.pop("messages") == 2 * len(TEXTS)
    assert shown.pop("imported", None) == (
        None if leaf == "chatsite.importing" else 2 * len(TEXTS)
    )
    traces = {
        name: re.findall(rf"(?i).{{0,40}}(?:{WORDS[leaf]}).{{0,40}}", text)
        for name, text in shown.items()
    }
    assert {name: found for name, found in traces.items() if found} == {}


SHOW = "from tests import traces; traces.show()"
