"""Takes the pictures under docs/ from a site of its own with the demo conversation."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.servers import Site, find_chromium

DOCS = Path(__file__).resolve().parent.parent / "docs"
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}
SCHEMES = ("light", "dark")


def log_in(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/accounts/login/")
    page.fill("[name=username]", "demo")
    page.fill("[name=password]", "demo")
    page.click("main button.primary")
    page.wait_for_url(f"{site.url}/")


def open_conversation(page: Page) -> None:
    page.locator("#conversation-list a").first.click()
    page.wait_for_url("**/c/*/")
    expect(page.locator("#connection")).to_have_attribute("data-state", "open")
    page.wait_for_load_state("networkidle")
    # From the divider down: the last summarised messages, then the window.
    page.locator(".divider").last.evaluate(
        """(divider) => {
            const pane = document.getElementById("transcript");
            pane.scrollTop = divider.offsetTop - pane.offsetTop - 250;
        }"""
    )
    page.wait_for_timeout(300)


def take(browser: Browser, site: Site, size: str, scheme: str) -> None:
    """The split page in one size and colour scheme; a phone shows it in two tabs."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        device_scale_factor=1 if size == "wide" else 2,
    )
    page = context.new_page()
    log_in(page, site)
    open_conversation(page)
    page.screenshot(path=DOCS / f"split-{size}-{scheme}.png")
    if size == "narrow":
        page.click("[data-tab-to=model]")
        page.screenshot(path=DOCS / f"split-{size}-model-{scheme}.png")
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
