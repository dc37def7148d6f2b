"""Apps taken out: the site does all the rest, and shows no trace of them."""

import json
import re

import pytest
from django.conf import settings

from .clients import Person
from .databases import copy_sqlite
from .servers import Site

pytestmark = [pytest.mark.server, pytest.mark.database("sqlite")]
# What no page, file or address may name without the app.
WORDS = {
    "announcements": "announcement",
    "archives": r"chatgpt|deepseek",
    "budgets": r"budget-|monthly (?:budget|use)|monthly_use",
    "code_blocks": r"code_blocks|code-words",
    "compare": r"compare[/.]|conversation-(?:compare|costs)|costs[/.]"
    r"|what .{1,9} cost\b|request before",
    "diagrams": r"mermaid|diagram",
    "devices": r"where you are logged in|account/devices|device-log-out"
    r"|\"devices\": \[",
    "endpoint": r"other clients|\bkeys?\b.{0,20}client|account/keys"
    r"|api_keys|(?<!feedback)/why/",
    "evidence": r"\bevidence\b|windowpane-keys",
    "examples": r"as an example|/examples?/|(?-i:\bExamples\b)",
    "experiments": "experiment|another policy",
    "facts": r"facts? about (?:you|the user)|remembered (?:of|about) you|/facts/"
    r"|memory-fact|fact-change",
    "feedback": "feedback|good reply|bad reply",
    "grounding": r"\bgrounding|answer comes from",
    "importing": r"\bimport(?:s|ed|ing)?\b"
    r"|(?<!examples[/-])(?<!exact=)(?<!<summary>)export(?!ed</a>)|download everything",
    "installable": r"installable|webmanifest|service-worker|\boffline/",
    "labels": r'(?<!optgroup )(?<![<\-/"])\blabels?\b',
    "mcp": r"mcp_servers",
    "retention": "retention|long conversations are kept",
    "review_queue": r"review[ _]?queue|queueitem",
    "quiz": r"\bquiz",
    "rules": r"\brules? that you|own rules|/rules/|memory-rule|_rules\b"
    r"|\"rules\": \[",
    "switches": r"switchedoff|switched off",
    "organisation": r"connect/|second.factor|passkey|openid|saml",
    "signin": r"forgot|invitation|signin|/accounts/link/",
    "tracing": r"opentelemetry|\botlp",
    "trials": r"again differently|/trials?/|trials\.css|_trials\b|\"trials\"",
    "web": r"search_web|read_page|search the web",
    "unread": r"\bunread|news-link|notify-offer",
    "sharing": r"\bshar(?:e[ds]?|ing)\b|share-revoke|<token",
}
APPS = {name.rpartition(".")[2]: name for name in settings.OPTIONAL_APPS}
TEXTS = ("Hello", "Where is Kyoto?", "How far is it?", "Thank you")


def test_each_app_has_its_words():
    assert {*WORDS} == {*APPS}


def make_site(database, *without):
    """A site without these apps."""
    names = ",".join(APPS[label] for label in without)
    env = {"DATABASE_URL": database, "WITHOUT": names}
    return Site({**env, "DJANGO_SETTINGS_MODULE": "tests.without_apps"})


def test_a_new_site_needs_none_of_them(tmp_path):
    site = make_site(f"sqlite:///{tmp_path / 'db.sqlite3'}", *WORDS)
    site.manage("migrate", "--verbosity", "0")
    with site:
        alice = Person(site, "alice")
        with alice.chat(alice.create("langgraph")) as chat:
            assert chat.say("Hello")["state"] == "done"


@pytest.fixture
def site(tmp_path, without):
    """The database still has the tables of these apps, as where they are taken out."""
    with make_site(copy_sqlite(tmp_path / "db.sqlite3"), *without) as made:
        yield made


def group_apps():
    """Each app is in two groups, and with no other app in both: so there is a site
    without it that has the other one. One site for each would take half as long again.
    """
    numbered = [*enumerate(WORDS)]
    for cut in (lambda number: number // 4, lambda number: number % 4):
        for key in sorted({cut(number) for number, _ in numbered}):
            yield [app for number, app in numbered if cut(number) == key]


@pytest.mark.parametrize("without", [*group_apps()], ids="+".join)
def test_the_site_works_without_them_and_shows_no_trace(site, without):
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
        None if "importing" in without else 2 * len(TEXTS)
    )
    traces = {
        (app, name): re.findall(rf"(?i).{{0,40}}(?:{WORDS[app]}).{{0,40}}", text)
        for app in without
        for name, text in shown.items()
    }
    assert {where: found for where, found in traces.items() if found} == {}


SHOW = "from tests import traces; traces.show()"
