"""The URLs that a browser requests to install the site."""

import json
import re
from io import BytesIO
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client
from PIL import Image

from scripts import icons

pytestmark = pytest.mark.django_db


def read_manifest(**headers):
    answer = Client().get("/manifest.webmanifest", **headers)
    assert answer["Content-Type"] == "application/manifest+json"
    return answer.json()


def test_a_stranger_gets_the_manifest_with_icons_of_their_sizes():
    manifest = read_manifest()
    assert (manifest["start_url"], manifest["display"]) == ("/", "standalone")
    for icon in manifest["icons"]:
        path = finders.find(icon["src"].removeprefix("/static/"))
        with Image.open(path) as image:
            assert f"{image.width}x{image.height}" == icon["sizes"]
        assert Path(path).stat().st_size < 10_000
    assert read_manifest(HTTP_ACCEPT_LANGUAGE="zh-hans")["lang"] == "zh-hans"


def test_the_icons_are_those_of_the_mark():
    svg = (settings.BASE_DIR / "static/icon.svg").read_text()
    for name, share in icons.SIZES.items():
        drawn, kept = BytesIO(), icons.OUT / f"{name}.png"
        icon = icons.draw_icon(svg, int(name.rpartition("-")[2]), share)
        icon.quantize(64).save(drawn, "PNG", optimize=True)
        assert drawn.getvalue() == kept.read_bytes(), "run scripts/icons.py"


def test_the_colours_are_those_of_the_site():
    css = (settings.BASE_DIR / "static/css/variables.css").read_text()
    manifest = read_manifest()
    assert f"--paper: light-dark({manifest['background_color']}," in css
    assert f"--accent: light-dark({manifest['theme_color']}," in css


def read_worker(**headers):
    answer = Client().get("/service-worker.js", **headers)
    assert answer["Content-Type"].startswith("text/javascript")
    assert answer["Cache-Control"] == "no-cache"
    return answer.content.decode()


def test_the_worker_keeps_one_page_and_its_files():
    kept = json.loads(re.search(r"KEPT = (\[.*\]);", read_worker())[1])
    assert kept[0] == "/offline/"
    assert len(kept) == 5
    page = Client().get("/offline/").content.decode()
    assert {*re.findall(r'(?:href|src)="(/[^"]+)"', page)} == {*kept[1:]}
    assert "cookie" not in page.lower()


def test_worker_differs_by_language():
    chinese = {"HTTP_ACCEPT_LANGUAGE": "zh-hans"}
    assert read_worker(**chinese) != read_worker()
    assert "没有连接" in Client().get("/offline/", **chinese).content.decode()


def test_every_page_names_it(client):
    for page in ("/", "/accounts/login/"):
        html = client.get(page, follow=True).content.decode()
        assert '<link rel="manifest" href="/manifest.webmanifest">' in html
    assert "manifest-src 'self'" in client.get("/")["Content-Security-Policy"]
