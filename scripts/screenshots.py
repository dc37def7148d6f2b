"""Takes the pictures under docs/ from a site of its own with the demo conversation."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.servers import Site, find_chromium

DOCS = Path(__file__).resolve().parent.parent / "docs"
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
SCHEMES = ("light", "dark")


def log_in(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/accounts/login/")
    page.fill("[name=username]", "demo")
    page.fill("[name=password]", "demo")
    page.click("form[method=post] button.primary")
    page.wait_for_url(f"{site.url}/")


def take(browser: Browser, site: Site, size: str, scheme: str) -> None:
    """The list and the split page, in one size and colour scheme."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme
    )
    page = context.new_page()
    log_in(page, site)
    page.screenshot(path=DOCS / f"list-{size}-{scheme}.png")
    page.locator("main a[href^='/c/'], nav a[href^='/c/']").first.click()
    page.wait_for_url("**/c/*/")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=DOCS / f"split-{size}-{scheme}.png")
    context.close()


def main() -> None:
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/site.sqlite3"
        site = Site({"DEBUG": "true", "DATABASE_URL": database, "OPENAI_API_KEY": ""})
        site.manage("migrate", "--verbosity", "0")
        site.manage("seed_demo")
        with site, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=find_chromium(), args=["--no-sandbox"]
            )
            for size in SIZES:
                for scheme in SCHEMES:
                    take(browser, site, size, scheme)
            browser.close()
    names = sorted(path.name for path in DOCS.glob("*.png"))
    sys.stdout.write(f"docs/: {', '.join(names)}\n")


if __name__ == "__main__":
    main()
