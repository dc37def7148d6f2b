"""Cards of calls of MCP servers: how far one is, and the files that it brings."""

import json
import re
import sys
import time

import pytest
from playwright.sync_api import expect

from tests.fakes.mcp_raw import PICTURE
from tests.patience import PATIENCE
from tests.servers import ROOT

from .test_access import PHONE, is_clean

pytestmark = pytest.mark.browser

FAKES = ROOT / "tests" / "fakes"


@pytest.fixture(scope="module")
def with_tools(make_site, tmp_path_factory):
    """A site with two MCP servers, and the demo model, which calls named tools."""
    path = tmp_path_factory.mktemp("mcp") / "mcp.json"
    servers = {
        name: {"command": sys.executable, "args": [str(FAKES / f"mcp_{name}.py")]}
        for name in ("raw", "server")
    }
    path.write_text(json.dumps({"mcpServers": servers}))
    tools = "raw_kinds,server_count"
    with make_site(
        MCP_SERVERS=str(path), DEFAULT_TOOLS=tools, DEMO_TOKENS_PER_SECOND="200"
    ) as running:
        yield running


def wait_until(is_so):
    end = time.monotonic() + 60 * PATIENCE
    while not is_so() and time.monotonic() < end:
        time.sleep(0.2)


def all_in(shown):
    return "server: count" in shown and "raw: kinds" in shown


def card(chat, name):
    return chat.page.locator(".tool-card", has=chat.page.locator(f'[title="{name}"]'))


def bring_files(chat):
    """The card of a call that has brought files, open."""
    chat.send("use raw_kinds {}")
    found = card(chat, "raw_kinds")
    found.get_by_role("button", name="Allow once").click()
    expect(found.locator(".tool-state")).to_have_text("Done")
    expect(chat.in_state("done")).to_have_count(1)
    found.locator("> summary").click()
    expect(found.locator(".tool-files")).to_be_visible()
    return found


@pytest.fixture
def chat(open_page, with_tools):
    page = open_page(with_tools, is_home=False)
    page.create()
    # Servers that are slow to start have their tools later.
    choice = f"{page.url}memory/tools/"
    wait_until(lambda: all_in(page.page.request.get(choice).text()))
    return page


def test_progress_is_shown_while_a_call_runs(chat):
    chat.send('use server_count {"steps": 8, "pause": 0.7}')
    found = card(chat, "server_count")
    found.locator("> summary").click()
    expect(found.locator("progress")).to_be_visible()
    expect(found.locator(".tool-progress")).to_contain_text("of 8")
    # Steps in between are not announced.
    expect(found.locator(".tool-progress")).to_contain_text(re.compile("step [3-7]"))
    expect(found.locator(".tool-answer")).to_contain_text("Counted.")
    assert found.locator(".tool-progress").count() == 0


def test_files_are_shown_and_saved(chat):
    found = bring_files(chat)
    picture = found.locator("img")
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("naturalWidth", 320)
    # It is silent until it is asked for.
    sound = found.locator("audio")
    assert sound.evaluate("each => each.networkState") == 1
    sound.evaluate("each => { each.load(); each.preload = 'metadata' }")
    expect(sound).to_have_js_property("duration", 0.5)
    expect(found).to_contain_text("The plan")
    link = found.get_by_role("link", name="https://example.org/a/plan.pdf")
    assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    for name, data in (("notes.txt", b"Some notes."), ("data.bin", b"\0\1\2\3")):
        with chat.page.expect_download() as download:
            found.get_by_role("link", name=f"Download {name}").click()
        assert download.value.suggested_filename == name
        assert download.value.path().read_bytes() == data
    with chat.page.expect_download() as download:
        found.get_by_role("link", name="Download image/png").click()
    assert download.value.path().read_bytes() == PICTURE


def test_files_are_accessible_and_stay_inside_a_phone(chat):
    bring_files(chat)
    is_clean(chat.page)
    chat.page.set_viewport_size(PHONE)
    width = chat.page.evaluate("document.querySelector('#transcript').scrollWidth")
    assert width <= PHONE["width"]
