"""The page without a connection, as the service worker shows it."""

import pytest
from playwright.sync_api import expect

from .test_access import findings

pytestmark = pytest.mark.browser


WORDS = {
    "en": ("No connection", "Log in · Windowpane"),
    "zh-CN": ("没有连接", "登录 · Windowpane"),
}
KEPT = """async () => {
    const found = [];
    for (const name of await caches.keys()) {
        for (const { url } of await (await caches.open(name)).keys()) found.push(new URL(url).pathname);
    }
    return found;
}"""  # noqa: E501


@pytest.mark.parametrize("language", WORDS)
def test_a_phone_without_a_connection_is_told_so(browser, site, language):
    phone = browser.new_context(viewport={"width": 390, "height": 844}, locale=language)
    page = phone.new_page()
    page.goto(f"{site.url}/accounts/login/")
    page.evaluate("async () => { await navigator.serviceWorker.ready; }")
    page_path, *files = page.evaluate(KEPT)
    assert page_path == "/offline/"
    assert len(files) == 4
    assert all(path.startswith("/static/") for path in files)
    phone.set_offline(True)
    page.goto(f"{site.url}/c/00000000-0000-4000-8000-000000000000/")
    said, title = WORDS[language]
    expect(page.get_by_role("heading")).to_have_text(said)
    assert page.evaluate("document.styleSheets.length") == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert findings(page) == []
    phone.set_offline(False)
    page.get_by_role("link").click()
    expect(page).to_have_title(title)
    # Pages that were looked at meanwhile are not kept.
    assert page.evaluate(KEPT) == [page_path, *files]
    phone.close()
