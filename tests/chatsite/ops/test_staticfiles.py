"""The addresses of static files, before and after collectstatic."""

import gzip
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.files.base import ContentFile
from django.core.management import call_command
from django.test import override_settings

from chatsite.staticfiles import JOINED, CollectedFilesStorage, list_parts
from memory import transcript

from ..scenes import page_of, url


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """The folder of all static files as they are served."""
    folder = tmp_path_factory.mktemp("static")
    with override_settings(STATIC_ROOT=folder, DEBUG=False):
        call_command("collectstatic", interactive=False, verbosity=0)
    return folder


def test_addresses_are_plain_before_collectstatic(tmp_path):
    storage = CollectedFilesStorage(location=tmp_path)
    assert storage.url("css/base.css") == "/static/css/base.css"


def test_addresses_are_hashed_after_collectstatic(collected):
    address = CollectedFilesStorage(location=collected).url("css/base.css")
    assert address != "/static/css/base.css"
    text = (collected / address.removeprefix("/static/")).read_text()
    assert text == (collected / "css/base.css").read_text()
    assert "/*" not in text
    assert "sans-serif" in (collected / "css/variables.css").read_text()


def test_quoted_text_that_looks_like_a_comment_stays(tmp_path):
    storage = CollectedFilesStorage(location=tmp_path)
    css = b"""/* it's */ a::before { content: "/* x */"; } /* "b" */ i { top: 0; }"""
    storage.save("some.css", ContentFile(css))
    assert (tmp_path / "some.css").read_text() == (
        'a::before { content: "/* x */"; } i { top: 0; }'
    )


def served(folder: Path, name: str) -> Path:
    """The file that pages ask for."""
    address = CollectedFilesStorage(location=folder).url(name)
    return folder / address.removeprefix("/static/")


def test_imports_of_a_stylesheet_are_served_in_their_place(collected):
    one = served(collected, "css/split-page.css")
    assert b"@import" not in one.read_bytes()
    for name in ("transcript", "context"):
        part = served(collected, f"css/{name}.css").read_bytes()
        assert part.strip() in one.read_bytes()
    packed = one.with_name(f"{one.name}.gz").read_bytes()
    assert gzip.decompress(packed) == one.read_bytes()


def test_a_changed_import_is_collected_again(tmp_path):
    sources, target = tmp_path / "sources", tmp_path / "target"
    sources.mkdir()
    (sources / "all.css").write_text('@import url("more.css");')
    (sources / "more.css").write_text('@import url("one.css");')
    names = set()
    with override_settings(STATICFILES_DIRS=[sources], STATIC_ROOT=target, DEBUG=False):
        for colour in ("red", "green", "green"):
            (sources / "one.css").write_text(f"a {{ color: {colour}; }}")
            call_command("collectstatic", interactive=False, verbosity=0)
            one = served(target, "all.css")
            assert one.read_text().strip() == f"a {{ color: {colour}; }}"
            names.add(one.name)
    assert len(names) == 2


@pytest.mark.parametrize("name", JOINED)
def test_scripts_that_pages_have_together_are_served_as_one(collected, name):
    storage = CollectedFilesStorage(location=collected)
    [address] = storage.list_addresses(name)
    one = collected / address.removeprefix("/static/")
    parts = [(collected / part).read_text() for part in list_parts(name)]
    assert len(parts) > 1
    assert one.read_text() == "\n".join(parts)
    packed = one.with_name(f"{one.name}.gz").read_bytes()
    assert gzip.decompress(packed) == one.read_bytes()


def test_scripts_are_served_apart_before_collectstatic(tmp_path, collected):
    apart = ["/static/js/outbox.js", "/static/js/composer.js"]
    uncollected = CollectedFilesStorage(location=tmp_path)
    assert uncollected.list_addresses("js/sending.js") == apart
    with override_settings(DEBUG=True):
        storage = CollectedFilesStorage(location=collected)
        assert storage.list_addresses("js/sending.js") == apart


def scripts_of(page: str, attribute: str) -> set[str]:
    """Names of the own scripts that the page's <script> elements give there."""
    own = rf'<script[^>]* {attribute}="/static/((?!django_htmx)[\w/-]+)'
    return set(re.findall(own, page))


def bytes_of(names: set[str]) -> int:
    """Of scripts; compressed, as they travel, they are less than half."""
    paths = [Path(finders.find(f"{name}.js")) for name in names]
    return sum(path.stat().st_size for path in paths)


def bytes_served(folder: Path, names: set[str]) -> int:
    """Of stylesheets, before they are compressed."""
    return sum(served(folder, f"{name}.css").stat().st_size for name in names)


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
    def test_the_split_page_loads_at_most_75_kb_at_once(self, client, conversation):
        scripts = scripts_of(page_of(client, conversation), "src")
        assert {"js/live", "js/composer", "js/first-use"} <= scripts
        assert bytes_of(scripts) <= 75_000

    def test_the_rest_is_loaded_on_first_use(self, client, conversation):
        page = page_of(client, conversation)
        modules = scripts_of(page, "data-module")
        assert modules == {
            *("attachments/attachment-cards", "js/colours", "js/counterpart-lights"),
            *("js/open-dialog", "js/reading-acts", "js/replay", "unread/news"),
            "code_blocks/dress",
        }
        assert modules.isdisjoint(scripts_of(page, "src"))
        assert bytes_of(modules) <= 29_500

    def test_scripts_of_the_list_come_with_the_first_look_at_it(
        self, client, conversation
    ):
        page = page_of(client, conversation)
        assert first_used(page, "js") == {"js/list-actions"}
        assert "js/list-actions" not in scripts_of(page, "src")


class TestStyles:
    def test_the_split_page_loads_at_most_47_kb_at_once(
        self, client, conversation, collected
    ):
        styles = styles_of(page_of(client, conversation))
        assert {"css/page", "css/split-page"} <= styles
        assert bytes_served(collected, styles) <= 47_000

    def test_the_rest_is_loaded_on_first_use(self, client, conversation, collected):
        page = page_of(client, conversation)
        later = first_used(page, "css")
        assert {"css/menus", "css/dialog", "css/sheets", "sharing/links"} <= later
        assert later.isdisjoint(styles_of(page))
        assert styles_of(page, "print") == {"css/print"}
        assert bytes_served(collected, later | {"css/print"}) <= 27_500

    def test_the_home_page_asks_for_four_and_no_leaf_of_conversations(
        self, client, conversation, collected
    ):
        """With its font that is one round: browsers ask a site for six at once."""
        client.force_login(conversation.owner)
        styles = styles_of(client.get("/").content.decode())
        leaves = {"attachments/attachments", "labels/labels"}
        assert styles == {"css/page", "css/home"} | leaves
        assert b"@import" not in served(collected, "css/home.css").read_bytes()

    def test_styles_of_cards_come_with_the_tools(self, client, conversation):
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
