"""The addresses of static files, before and after collectstatic."""

import gzip
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.files.base import ContentFile
from django.core.management import call_command
from django.test import override_settings

from chatsite.staticfiles import BUNDLES, CollectedFilesStorage, list_parts
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


@pytest.mark.parametrize("name", BUNDLES)
def test_bundle_is_served_hashed_and_compressed(collected, name):
    one = served(collected, name)
    assert one.name != Path(name).name
    parts = [served(collected, part).read_bytes() for part in list_parts(name)]
    text = one.read_bytes()
    assert len(parts) > 1
    places = [text.index(part.strip()) for part in parts]
    assert places == sorted(places)
    packed = one.with_name(f"{one.name}.gz").read_bytes()
    assert gzip.decompress(packed) == text


def test_bundle_has_a_changed_part_on_the_next_request(tmp_path, monkeypatch):
    monkeypatch.setitem(BUNDLES, "bundles/some.js", "some/one some/two")
    some = tmp_path / "some"
    some.mkdir()
    (some / "one.js").write_text("one()")
    with override_settings(STATICFILES_DIRS=[tmp_path]):
        assert finders.find("bundles/some.js") is None
        for text in ("two()", "three()"):
            (some / "two.js").write_text(text)
            found = Path(finders.find("bundles/some.js"))
            assert found.read_text() == f"one()\n;\n{text}"
            time = found.stat().st_mtime_ns
            assert Path(finders.find("bundles/some.js")).stat().st_mtime_ns == time
        assert finders.find("bundles/some.js", find_all=True) == [str(found)]


def scripts_of(page: str) -> set[str]:
    """Names of the own scripts that the page loads at once, bundled or not."""
    own = r'<script[^>]* src="/static/([\w/-]+)\.js'
    return {
        part.removesuffix(".js")
        for name in re.findall(own, page)
        for part in (list_parts(f"{name}.js") if "bundles" in name else [name])
        if "django_htmx" not in part
    }


def modules_of(page: str) -> set[str]:
    """Names of the modules that the bundle loads on first use."""
    [bundle] = re.findall(r"<script[^>]* src=[^>]*/bundles/[^>]*>", page)
    return set(re.findall(r"/static/([\w/-]+)\.js\b", bundle.split("src=")[1])[1:])


def bytes_of(names: set[str]) -> int:
    """Return the bytes of scripts; compressed, as they travel, they are
    less than half.
    """
    paths = [Path(finders.find(f"{name}.js")) for name in names]
    return sum(path.stat().st_size for path in paths)


def bytes_served(folder: Path, names: set[str]) -> int:
    """Return the bytes of stylesheets, before they are compressed."""
    return sum(served(folder, f"{name}.css").stat().st_size for name in names)


def styles_of(page: str, media: str = "") -> set[str]:
    """Names of the stylesheets that it asks for at once, for a screen or for print."""
    links = re.findall(
        r'<link rel="stylesheet" href="/static/([\w/-]+)\.css"(.*?)>', page
    )
    return {name for name, rest in links if ("print" in rest) == (media == "print")}


def first_used(page: str, ending: str) -> set[str]:
    """Names of what it asks for when a part of it is first used."""
    kinds = "first-use" if ending == "js" else "first-use|styles"
    found = re.findall(rf'data-(?:{kinds})="([^"]*)"', page)
    names = re.findall(rf"/static/([\w/-]+)\.{ending}\b", " ".join(found))
    return set(names)


class TestScripts:
    def test_the_split_page_loads_at_most_76_kb_at_once(self, client, conversation):
        scripts = scripts_of(page_of(client, conversation))
        assert {"js/live", "js/composer", "js/first-use"} <= scripts
        assert bytes_of(scripts) <= 76_000

    def test_the_rest_is_loaded_on_first_use(self, client, conversation):
        page = page_of(client, conversation)
        modules = modules_of(page)
        assert modules == {
            *("attachments/attachment-cards", "js/colours", "js/counterpart-lights"),
            *("js/open-dialog", "js/reading-acts", "js/replay", "unread/news"),
            "code_blocks/dress",
        }
        assert modules.isdisjoint(scripts_of(page))
        assert bytes_of(modules) <= 33_000

    def test_scripts_of_the_list_come_with_the_first_look_at_it(
        self, client, conversation
    ):
        page = page_of(client, conversation)
        found = {"js/list-actions", "js/desk", "grounding/grounding"}
        assert first_used(page, "js") == found
        assert "js/list-actions" not in scripts_of(page)


class TestStyles:
    def test_the_split_page_loads_at_most_48_kb_at_once(
        self, client, conversation, collected
    ):
        styles = styles_of(page_of(client, conversation))
        assert styles == {"bundles/conversation"}
        assert bytes_served(collected, styles) <= 48_000

    def test_the_rest_is_loaded_on_first_use(self, client, conversation, collected):
        page = page_of(client, conversation)
        later = first_used(page, "css")
        assert {"css/menus", "css/dialog", "css/sheets", "sharing/links"} <= later
        assert later.isdisjoint(styles_of(page))
        assert styles_of(page, "print") == {"css/print"}
        assert bytes_served(collected, later | {"css/print"}) <= 27_500

    def test_stylesheets_do_not_look_back_from_a_sibling(self, collected):
        # One made each change of a transcript of 100 messages take 9 ms longer.
        for path in collected.rglob("*.css"):
            assert not re.search(r":has\(\s*[+~]", path.read_text()), path.name

    def test_the_home_page_asks_for_one_without_features_of_conversations(
        self, client, conversation
    ):
        client.force_login(conversation.owner)
        assert styles_of(client.get("/").content.decode()) == {"bundles/home"}
        parts = list_parts("bundles/home.css")
        assert parts[-2:] == ["attachments/attachments.css", "labels/labels.css"]

    def test_parts_of_a_bundle_are_known_to_the_page(self, client):
        client.logout()
        page = client.get("/accounts/login/").content.decode()
        [parts] = re.findall(r'data-parts="([^"]*)"', page)
        names = [each.removeprefix("/static/") for each in parts.split()]
        assert names == list_parts("bundles/page.css")

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
