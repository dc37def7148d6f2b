"""The addresses of static files, before and after collectstatic."""

import re
from pathlib import Path

from django.contrib.staticfiles import finders
from django.core.management import call_command

from chatsite.staticfiles import CollectedFilesStorage
from memory import transcript

from ..scenes import page_of, url

COMMENTS = re.compile(r"/\*.*?\*/", re.DOTALL)


def test_addresses_are_plain_before_collectstatic(tmp_path):
    storage = CollectedFilesStorage(location=tmp_path)
    assert storage.url("css/base.css") == "/static/css/base.css"


def test_addresses_are_hashed_after_collectstatic(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    settings.DEBUG = False
    call_command("collectstatic", interactive=False, verbosity=0)
    address = CollectedFilesStorage(location=tmp_path).url("css/base.css")
    assert address != "/static/css/base.css"
    assert (tmp_path / address.removeprefix("/static/")).exists()


def scripts_of(page: str, attribute: str) -> set[str]:
    """Names of the own scripts that the page's <script> elements give there."""
    own = rf'<script[^>]* {attribute}="/static/((?!django_htmx)[\w/-]+)'
    return set(re.findall(own, page))


def bytes_of(names: set[str], ending: str = "js") -> int:
    """As they are written; compressed, as they travel, they are less than half."""
    paths = [Path(finders.find(f"{name}.{ending}")) for name in names]
    return sum(path.stat().st_size for path in paths)


def bytes_of_rules(names: set[str]) -> int:
    """Of stylesheets as they are written, comments apart."""
    sheets = (Path(finders.find(f"{name}.css")).read_text() for name in names)
    return sum(len(COMMENTS.sub("", sheet).encode()) for sheet in sheets)


def styles_of(page: str, media: str = "") -> set[str]:
    """Names of the stylesheets that it asks for at once, for a screen or for print."""
    links = re.findall(
        r'<link rel="stylesheet" href="/static/([\w/-]+)\.css"(.*?)>', page
    )
    return {name for name, rest in links if ("print" in rest) == (media == "print")}


def first_used(page: str, ending: str) -> set[str]:
    """Names of what it asks for when a part of it is first used."""
    found = re.findall(r'data-(?:first-use|styles)="([^"]*)"', page)
    names = re.findall(rf"/static/([\w/-]+)\.{ending}\b", " ".join(found))
    return set(names)


class TestScripts:
    def test_the_split_page_loads_at_most_68_kb_at_once(self, client, conversation):
        scripts = scripts_of(page_of(client, conversation), "src")
        assert {"js/live", "js/composer", "js/first-use"} <= scripts
        assert bytes_of(scripts) <= 68_000

    def test_the_rest_is_loaded_on_first_use(self, client, conversation):
        page = page_of(client, conversation)
        modules = scripts_of(page, "data-module")
        assert modules == {
            *("attachments/attachment-cards", "js/colours", "js/counterpart-lights"),
            *("js/open-dialog", "js/reading-acts", "js/replay", "tools/unread"),
        }
        assert modules.isdisjoint(scripts_of(page, "src"))
        assert bytes_of(modules) <= 24_000

    def test_what_is_done_with_the_list_comes_with_the_first_look_at_it(
        self, client, conversation
    ):
        page = page_of(client, conversation)
        assert first_used(page, "js") == {"js/list-actions"}
        assert "js/list-actions" not in scripts_of(page, "src")


class TestStyles:
    def test_the_split_page_loads_at_most_45_kb_at_once(self, client, conversation):
        styles = styles_of(page_of(client, conversation))
        assert {"css/variables", "css/transcript", "css/context"} <= styles
        assert bytes_of_rules(styles) <= 45_000
        assert bytes_of(styles, "css") <= 50_000

    def test_the_rest_is_loaded_on_first_use(self, client, conversation):
        page = page_of(client, conversation)
        later = first_used(page, "css")
        assert {"css/menus", "css/dialog", "css/sheets", "sharing/links"} <= later
        assert later.isdisjoint(styles_of(page))
        assert styles_of(page, "print") == {"css/print"}
        assert bytes_of(later | {"css/print"}, "css") <= 26_000

    def test_those_of_cards_come_with_the_tools(self, client, conversation):
        assert "tools/tools" not in styles_of(page_of(client, conversation))
        transcript.change_tools(conversation, ["calculate"])
        assert "tools/tools" in styles_of(page_of(client, conversation))

    def test_a_temporary_conversation_has_its_own(self, client, conversation, alice):
        assert "css/strips" not in styles_of(page_of(client, conversation))
        temporary = transcript.create_conversation(alice, temporary=True)
        assert "css/strips" in styles_of(page_of(client, temporary))

    def test_chosen_rows_are_styled_from_the_start(self, client, conversation):
        page = client.get(f"{url('detail', conversation)}?select=1").content.decode()
        assert "css/list-actions" in styles_of(page)
