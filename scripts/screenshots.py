"""Takes the pictures under docs/ from a site of its own with the demo conversation."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import sync_playwright

from tests.fakes.web import RESULTS, origin, serve_web
from tests.servers import Site, find_chromium

from . import pictures_admin, pictures_client, pictures_layouts, pictures_page
from .camera import FOLDER, Camera

PARTS = {
    "page": pictures_page,
    "admin": pictures_admin,
    "client": pictures_client,
    "layouts": pictures_layouts,
}


@contextmanager
def seeded_site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory() as folder, serve_web(found=RESULTS[:2]) as web:
        site = Site(
            {
                "WEB_SEARCH": origin(web),
                "DEBUG": "true",
                "DATABASE_URL": f"sqlite:///{folder}/site.sqlite3",
                "OPENAI_API_KEY": "",
                "DEMO_TOKENS_PER_SECOND": "0",
            }
        )
        site.manage("migrate", "--verbosity", "0")
        site.manage("seed_demo")
        with site:
            yield site


def main(wanted: list[str]) -> None:
    """Take the parts named, or all of them; each has a site of its own."""
    for name in wanted or PARTS:
        with seeded_site() as site, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=find_chromium(), args=["--no-sandbox"]
            )
            camera = Camera(browser, site)
            PARTS[name].take_all(camera)
            browser.close()
            sys.stdout.write(f"{FOLDER}: {', '.join(camera.taken)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
