"""The addresses of static files, before and after collectstatic."""

import re

from django.conf import settings as site_settings
from django.core.management import call_command

from chatsite.staticfiles import CollectedFilesStorage


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


def test_the_split_page_loads_less_than_79_kb_of_own_script():
    """As it is written; compressed, as it travels, it is less than half."""
    root = site_settings.BASE_DIR
    pages = [
        root / "templates" / name for name in ("_base.html", "chat/conversation.html")
    ]
    scripts = re.findall(
        r"static '(js/[\w-]+\.js)'", "".join(p.read_text() for p in pages)
    )
    assert "js/live.js" in scripts
    assert sum((root / "static" / name).stat().st_size for name in scripts) < 79_000
