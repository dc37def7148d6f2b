"""The documentation names only what is there, and the protocol's page has all of it."""

import ast
import re
from dataclasses import fields as fields_of
from functools import cache
from importlib.metadata import packages_distributions

import pytest
from django.apps import apps
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage

from chatsite import plugins
from chatsite.live import consumer, outbox, watcher
from chatsite.protocol import events

from .servers import ROOT

FOLDERS_OF_PAGES = ("docs", "chatsite", "memory", "bench", "tests", "deploy")
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for top in FOLDERS_OF_PAGES for page in (ROOT / top).rglob("*.md")),
    ]
)
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text()
COMMANDS = {
    path.stem
    for top in ("chatsite", "memory")
    for path in (ROOT / top).glob("**/management/commands/*.py")
    if path.stem != "__init__"
}
DJANGO_COMMANDS = {
    "axes_reset_username",
    "check",
    "collectstatic",
    "createsuperuser",
    "makemigrations",
}
FOLDERS = (
    r"(?:chatsite|memory|tests|bench|scripts|static|templates|deploy|docs|locale|"
    r"vendor)"
)


def section(title):
    return re.search(rf"(?ms)^#+ {title}\n(.+?)(?:^#+ |\Z)", PROTOCOL)[1]


def keys(title):
    """The first cells of a section's table, without what follows a code's name."""
    return set(re.findall(r"(?m)^\| `?(\w+)", section(title))) - {"code", "event"}


def calls():
    """Every call in the product whose first argument is a plain text."""
    paths = (
        path for top in ("chatsite", "memory") for path in (ROOT / top).rglob("*.py")
    )
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text())))
    for node in nodes:
        first = node.args[0] if isinstance(node, ast.Call) and node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            yield name, first.value, len(node.args)


@cache
def error_codes():
    named = {
        text
        for name, text, _ in calls()
        if name in ("CommandError", "TextError", "Error") and text.isidentifier()
    }
    # A subclass of TextError hands its code on.
    handed_on = {
        text
        for name, text, count in calls()
        if name == "__init__" and count == 2 and text.isidentifier()
    }
    return named | handed_on


@cache
def names_in(path):
    """Functions, classes, methods as Class.method, and constants of a file."""
    found = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        name = getattr(node, "name", None)
        targets = [*getattr(node, "targets", []), getattr(node, "target", None)]
        found |= {each.id for each in targets if isinstance(each, ast.Name)} | {name}
        inner = node.body if isinstance(node, ast.ClassDef) else []
        found |= {f"{name}.{getattr(each, 'name', '')}" for each in inner}
    return found


class TestProtocol:
    def test_codes_of_errors_are_found(self):
        assert {"conflict", "superseded", "unavailable"} <= error_codes()

    def test_every_error_code_is_there_and_no_other(self):
        closing = {"signed_out", "too_many_sockets"}
        assert keys("Errors") == error_codes() - closing
        assert all(f"`{code}`" in PROTOCOL for code in closing)

    def test_every_event_is_there_with_its_fields(self):
        written = dict(re.findall(r"(?m)^\| `(\w+)\{(.+?)\}`", section("Events")))
        kinds = {*events.Event.__args__, *plugins.find_event_kinds().values()}
        kinds.remove(plugins.AppEvent)
        fields = {kind.type: [each.name for each in fields_of(kind)] for kind in kinds}
        assert {
            name: text.replace("?", "").split(",") for name, text in written.items()
        } == fields

    def test_every_command_is_there_with_its_fields(self):
        rows = re.findall(
            r'`\{"type":"(\w+)"(.*?)\}`', section("Commands of the client")
        )
        written = {name: re.findall(r'"(\w+)"', rest) for name, rest in rows}
        kinds = {*events.Command.__args__, *plugins.AppCommand.__subclasses__()}
        kinds.remove(plugins.AppCommand)
        words = {k: k.__name__.removesuffix("Command") for k in kinds}
        names = {
            re.sub(r"(?<!^)(?=[A-Z])", "_", w).lower(): k for k, w in words.items()
        }
        known = {name: [f.name for f in fields_of(k)] for name, k in names.items()}
        assert known.keys() == {*events.READERS, *plugins.find_command_readers()}
        assert written == known

    def test_every_close_code_is_there_and_no_other(self):
        codes = {*consumer.CLOSE_CODES.values(), outbox.FAILED, watcher.RESTART}
        codes |= {consumer.TRY_AGAIN_LATER, watcher.SIGNED_OUT, watcher.GONE}
        assert keys("Close codes") == {str(code) for code in codes}

    def test_every_management_command_is_there(self):
        assert keys("Commands") - {"command"} == COMMANDS - {"migrate"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
class TestNames:
    def test_every_path_exists(self, page):
        text = page.read_text()
        paths = set(re.findall(rf"(?<![\w/.-])({FOLDERS}/[\w./-]+\w)", text))
        missing = {path for path in paths if not (ROOT / path).exists()}
        # The example of a language that is not there yet.
        assert {path for path in missing if not path.startswith("locale/de/")} == set()

    def test_every_link_leads_to_a_file(self, page):
        links = re.findall(r'(?:\]\(|srcset="|src=")([^)#"]+)', page.read_text())
        local = {link for link in links if ":" not in link}
        assert {each for each in local if not (page.parent / each).exists()} == set()

    def test_every_name_in_a_file_is_defined_there(self, page):
        named = re.findall(r"`([\w/]+\.py)::([\w.]+)`", page.read_text())
        wrong = [
            f"{path}::{name}" for path, name in named if name not in names_in(path)
        ]
        assert wrong == []

    def test_every_make_target_exists(self, page):
        targets = set(re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text()))
        code = "".join(re.findall(r"(?s)```.+?```|`[^`\n]+`", page.read_text()))
        assert set(re.findall(r"\bmake ([a-z][\w-]*)", code)) - targets == set()

    def test_every_management_command_exists(self, page):
        named = re.findall(r"(?:manage\.py|windowpane-manage) (\w+)", page.read_text())
        assert set(named) - COMMANDS - DJANGO_COMMANDS - {"COMMAND"} == set()


async def test_the_engine_example_compacts_without_django():
    page = (ROOT / "docs" / "memory.md").read_text()
    code = re.search(r"```python\n(.+?)```", page, re.DOTALL)[1]
    indented = "".join(f"    {line}\n" for line in code.splitlines())
    kinds = [HumanMessage, AIMessage] * 4
    scope = {
        "messages": [kind(f"Text {n}", id=str(n)) for n, kind in enumerate(kinds, 1)],
        "model": FakeListChatModel(responses=["They counted to six."]),
    }
    source = f"async def example():\n{indented}    return compaction, summary\n"
    exec(source, scope)  # noqa: S102
    compaction, summary = await scope["example"]()
    assert [message.id for message in compaction.messages] == list("123456")
    assert summary.text == "They counted to six."


class TestPrivacy:
    def test_every_table_is_in_the_map_of_data(self, db):
        """Tables of the site's models, and all others of its database, are listed."""
        page = (ROOT / "docs" / "privacy.md").read_text()
        heads = re.findall(r"(?m)^\| (`.+?`) \|", page)
        named = re.findall(r"`(\w+)`", " ".join(heads))
        models = apps.get_models(include_auto_created=True)
        tables = {model._meta.db_table for model in models} | {"django_migrations"}
        assert sorted(named) == sorted(tables)


# Systems as README.md calls them, by the names of the tables of the bench.
SYSTEMS = {
    "Windowpane, adaptive": "Windowpane, layered, adaptive",
    "Windowpane, adaptive, with recall and rules kept": (
        "Windowpane, layered, adaptive + recall + rules kept"
    ),
    "LangMem, fixed 4,000": "LangMem, fixed 4000/4000/256",
    "LangChain, fixed 4,000": "LangChain, fixed 4000, no trim",
    "LangChain, our adaptive window": "LangChain, our adaptive window, no trim",
    "Deep Agents, fixed 4,000": "Deep Agents, fixed 4000, no trim",
    "LangGraph tutorial, fixed 4,000": "LangGraph tutorial, fixed 4000",
}
COLUMNS = {
    "cost of a turn": "cost",
    "mean prompt": "prompt tokens",
    "turns that waited": "turns blocked",
    "rewritten, most": "rewrites",
    "messages no summariser read": "never read",
    "newest value sent": "newest value",
    "facts alive of 400": "alive, short facts",
    "rules kept, hostile summariser": "hostile",
}
# What a cell of the comparison may have: one value, not that of two releases.
VALUE = re.compile(
    r"-|[\d,]+%?|\d+ / \d+|\d+ of \d+|\d+, \d+%( \(\d+\))?|not compacted|[0-9a-f]{8}"
)
DATE = re.compile(r" \(\d+ [A-Z]\w+ \d{4}\)$")
# The sets of the tables: of README.md by their order, elsewhere by the line before.
README_SETS = ("beam-100K-odd", "long_replies")
OF_ALL_SETS = ("alive, short facts", "hostile")
COMPARISONS = ("## How its memory compares", "## ")
FIGURES = ("## Figures", "## What they say")
COMPARED = "bench/memory/README.md"


def read_tables(text):
    """Yield (the line before, the first row, the others) for each table."""
    pattern = r"(?m)^(?!\|)(.*)\n+((?:\|.*\n)+)"
    for before, table in re.findall(pattern, text):
        rows = [
            [cell.strip(" *") for cell in line.strip("|\n").split("|")]
            for line in table.splitlines()
        ]
        yield before, rows[0], rows[2:]


def list_figures(page, part, sets=()):
    """Yield ((set, system, column), number) for each cell of the comparison."""
    text = (ROOT / page).read_text()
    start = text.index(part[0])
    text = text[start : text.index(part[1], start + len(part[0]))]
    for n, (before, head, rows) in enumerate(read_tables(text)):
        name = sets[n] if sets else before.partition(":")[0].strip("* ")
        for system, *cells in rows:
            system = DATE.sub("", system).strip("* ")
            for title, cell in zip(head[1:], cells, strict=True):
                column = DATE.sub("", title)
                column = COLUMNS.get(column, column)
                assert VALUE.fullmatch(DATE.sub("", cell)), (system, title, cell)
                place = "" if column in OF_ALL_SETS else name
                # "1 / 2": the median and the most; "9 of 10", "9, 50%": the first.
                cell = cell.rpartition(" / ")[2] if column == "rewrites" else cell
                if number := re.match(r"[\d,]*\d%?", cell):
                    yield (place, SYSTEMS.get(system, system), column), number[0]


def test_a_figure_of_a_row_has_one_value():
    known = {}
    for key, number in list_figures(COMPARED, FIGURES):
        assert known.setdefault(key, number) == number, key
    readme = [*list_figures("README.md", COMPARISONS, README_SETS)]
    assert len(readme) > 50
    assert [key for key, _ in readme if key not in known] == []
    assert [(key, n, known[key]) for key, n in readme if known[key] != n] == []


def test_earlier_figures_say_of_when_they_are():
    text = (ROOT / COMPARED).read_text()
    told = [row[0] for _, _, rows in read_tables(text) for row in rows]
    assert [cell for cell in told if "made earlier" in cell] == []


def imported_modules():
    """The packages that the product imports, by their first names."""
    for top in ("chatsite", "memory"):
        for path in (ROOT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    yield from (each.name.partition(".")[0] for each in node.names)
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    yield node.module.partition(".")[0]


def test_decisions_have_each_library_that_the_code_imports():
    text = (ROOT / "docs" / "decisions.md").read_text().partition("## Libraries")[2]
    named = {canonical(word) for word in re.findall(r"[\w.-]+\w", text)}
    packages = packages_distributions()
    # Several packages share the name of `opentelemetry`.
    imported = {
        name: {canonical(each) for each in packages[name]}
        for name in {*imported_modules()} & {*packages}
    }
    assert len(imported) > 30
    assert [name for name, known in imported.items() if not known & named] == []


def canonical(package):
    return re.sub(r"[-_.]+", "-", package.lower())


def test_releases_have_at_most_65_lines_in_the_changelog():
    text = (ROOT / "CHANGELOG.md").read_text()
    sections = {
        part.partition("\n")[0]: part.strip().count("\n")
        for part in text.split("\n## ")[1:]
    }
    assert {name: lines for name, lines in sections.items() if lines > 65} == {}


def test_site_of_pages_lists_each_page_of_features_and_extras():
    """`make docs` leaves out no page that has a place in the navigation."""
    text = (ROOT / "docs" / "mkdocs.yml").read_text()
    listed = set(re.findall(r"[\w/.-]+\.md", text))
    pages = {str(page.relative_to(ROOT)) for page in PAGES}
    mine = {page for page in pages if page.startswith(("docs/", "chatsite/contrib/"))}
    # Pages that belong to another page.
    inner = {page for page in mine if re.search(r"/endpoint/\w+/", page)}
    assert listed <= pages
    assert mine - inner - listed == set()
