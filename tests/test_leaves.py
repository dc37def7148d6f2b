"""Leaf apps taken out: the site does all the rest, and shows no trace of them."""

import json
import re

import pytest
from django.conf import settings

from .clients import Person
from .databases import copy_sqlite
from .servers import Site

pytestmark = [pytest.mark.server, pytest.mark.database("sqlite")]
# What no page, file or address may name without the leaf.
WORDS = {
    "chatsite.announcements": "announcement",
    "chatsite.attachments": r"\battach(?:ed|ments?)?[ -]|\bpdf|upload",
    "chatsite.budgets": r"budget-|monthly (?:budget|use)|monthly_use",
    "chatsite.code_blocks": r"code_blocks|code-words|diagram-frame",
    "chatsite.compare": r"compare[/.]|conversation-(?:compare|costs)|costs[/.]"
    r"|what .{1,9} cost\b|request before",
    "chatsite.devices": r"where you are logged in|account/devices|device-log-out"
    r"|\"devices\": \[",
    "chatsite.endpoint": r"other clients|\bkeys?\b.{0,20}client|account/keys"
    r"|api_keys|(?<!feedback)/why/",
    "chatsite.examples": r"as an example|/examples?/|(?-i:\bExamples\b)",
    "chatsite.experiments": "experiment|another policy",
    "chatsite.facts": r"facts? about (?:you|the user)|remembered of you|/facts/"
    r"|memory-fact|fact-change",
    "chatsite.feedback": "feedback|good reply|bad reply",
    "chatsite.importing": r"\bimport(?:s|ed|ing)?\b"
    r"|(?<!examples[/-])(?<!exact=)export(?!ed</a>)|download everything",
    "chatsite.installable": r"installable|webmanifest|service-worker|\boffline/",
    "chatsite.labels": r'(?<![<\-/"])\blabels?\b',
    "chatsite.retention": "retention|long conversations are kept",
    "chatsite.review_queue": r"review[ _]?queue|queueitem",
    "chatsite.rules": r"\brules? that you|own rules|/rules/|memory-rule|_rules\b"
    r"|\"rules\": \[",
    "chatsite.switches": r"switchedoff|switched off",
    "chatsite.signin": r"forgot|invitation|signin|/accounts/link/",
    "chatsite.tools": r"(?<!object-)(?<!user-)(?<!costs[-/])\btools?\b(?!\": \[\])"
    r"|\btool[ -]|consent|remind",
    "chatsite.tracing": r"opentelemetry|\botlp",
    "chatsite.tree": r"/tree/|\btree-|branch-edit|as another branch|tree\.branch"
    r"|find_unlisted",
    "chatsite.trials": r"again differently|/trials?/|trials\.css|_trials\b|\"trials\"",
    "chatsite.unread": r"\bunread|news-link|notify-offer",
    "chatsite.sharing": r"\bshar(?:e[ds]?|ing)\b|share-revoke|<token",
}
TEXTS = ("Hello", "Where is Kyoto?", "How far is it?", "Thank you")


def test_each_leaf_has_its_words():
    assert set(WORDS) == set(settings.LEAVES)


def make_site(database, *leaves):
    """A site without these leaf apps."""
    env = {"DATABASE_URL": database, "WITHOUT_LEAF": ",".join(leaves)}
    return Site({**env, "DJANGO_SETTINGS_MODULE": "tests.without_leaf"})


def test_a_new_site_needs_none_of_them(tmp_path):
    site = make_site(f"sqlite:///{tmp_path / 'db.sqlite3'}", *WORDS)
    site.manage("migrate", "--verbosity", "0")
    with site:
        alice = Person(site, "alice")
        with alice.chat(alice.create("langgraph")) as chat:
            assert chat.say("Hello")["state"] == "done"


@pytest.fixture
def site(tmp_path, leaves):
    """The database still has the tables of leaves, as where they are taken out."""
    with make_site(copy_sqlite(tmp_path / "db.sqlite3"), *leaves) as made:
        yield made


def group_leaves():
    """Each leaf is in two groups, and with no other leaf in both: so there is a site
    without it that has the other one. One site for each would take half as long again.
    """
    numbered = [*enumerate(WORDS)]
    for cut in (lambda number: number // 4, lambda number: number % 4):
        for key in sorted({cut(number) for number, _ in numbered}):
            yield [leaf for number, leaf in numbered if cut(number) == key]


@pytest.mark.parametrize("leaves", [*group_leaves()], ids="+".join)
def test_the_site_works_without_them_and_shows_no_trace(site, leaves):
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
        None if "chatsite.importing" in leaves else 2 * len(TEXTS)
    )
    traces = {
        (leaf, name): re.findall(rf"(?i).{{0,40}}(?:{WORDS[leaf]}).{{0,40}}", text)
        for leaf in leaves
        for name, text in shown.items()
    }
    assert {where: found for where, found in traces.items() if found} == {}


SHOW = "from tests import traces; traces.show()"
