"""The addresses of static files, before and after collectstatic."""

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
