"""The addresses of static files, before and after collectstatic."""

import re
from pathlib import Path

from django.contrib.staticfiles import finders
from django.core.management import call_command

from chatsite.staticfiles import CollectedFilesStorage

from ..scenes import page_of


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


def bytes_of(scripts: set[str]) -> int:
    """As they are written; compressed, as they travel, they are less than half."""
    paths = [Path(finders.find(f"{name}.js")) for name in scripts]
    return sum(path.stat().st_size for path in paths)


class TestScripts:
    def test_the_split_page_loads_at_most_70_kb_at_once(self, client, conversation):
        scripts = scripts_of(page_of(client, conversation), "src")
        assert {"js/live", "js/composer", "js/first-use"} <= scripts
        assert bytes_of(scripts) <= 70_000

    def test_the_rest_is_loaded_on_first_use(self, client, conversation):
        page = page_of(client, conversation)
        modules = scripts_of(page, "data-module")
        assert modules == {
            *("attachments/attachment-cards", "js/colours", "js/counterpart-lights"),
            *("js/open-dialog", "js/replay", "tools/unread"),
        }
        assert modules.isdisjoint(scripts_of(page, "src"))
        assert bytes_of(modules) <= 20_500
