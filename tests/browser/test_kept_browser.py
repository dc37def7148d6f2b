"""A browser serves test after test, and none finds what another has left."""

import pytest

from .conftest import forget_person, open_tab

pytestmark = pytest.mark.browser
LEAVE = "localStorage.left = document.cookie = 'left=1'"
FIND = "document.cookie + Object.keys(localStorage)"
LOADED = """performance.getEntriesByType("resource")
    .filter((each) => /[.](css|js)$/.test(each.name))
    .map((each) => each.transferSize)"""


def test_browser_keeps_nothing_but_its_cache(take_context, site):
    context = take_context(width=800)
    for _ in range(2):
        page = open_tab(context, site)
        page.goto(f"{site.url}/accounts/login/")
        assert "left" not in page.evaluate(FIND)
        page.evaluate(LEAVE)
        assert "left" in page.evaluate(FIND)
        loaded = page.evaluate(LOADED)
        forget_person(context)
    assert loaded
    assert not any(loaded), "asked for again"
