"""A client's conversation on the page: live while the client streams, and the page that
says why it is this one, in both languages.
"""

import json
import re
import threading
import urllib.request

import pytest
from playwright.sync_api import expect

from .pages import USER
from .test_access import is_clean

pytestmark = pytest.mark.browser

RULES = [
    {"role": "system", "content": f"You plan trips. It is {n}:00."} for n in (9, 10)
]
FERRY = {"role": "user", "content": "When does the ferry from Kobe to Shodo leave?"}
REPLY = {"role": "assistant", "content": f"Reply to: {FERRY['content']}"}
BACK = {"role": "user", "content": "And when does the last one come back from there?"}
SUMMARY = {"role": "user", "content": "So far we spoke about ferries to an island."}


@pytest.fixture
def send(slow_site):
    """send(*messages, model=…, until=…) -> the headers of an answer that was read
    to its end, or begun and left when the event `until` is set."""
    key = slow_site.manage("create_key", USER, "--name", "Open WebUI").strip()
    own = {"authorization": f"Bearer {key}", "content-type": "application/json"}

    def send(*messages, model="ok", until=None, **more):
        headers = {
            **own,
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        body = {"model": model, "messages": messages, "stream": True}
        address = f"{slow_site.url}/v1/chat/completions"
        data = json.dumps(body).encode()
        asked = urllib.request.Request(address, data, headers)
        with urllib.request.urlopen(asked) as answer:
            answer.read(until and 1_000)
            if until:
                until.wait(60)
            return answer.headers

    return send


def test_a_client_is_followed_and_explained(open_page, slow_site, send):
    view = send(RULES[0], FERRY)["x-windowpane-view"]
    chat = open_page(slow_site, is_home=False)
    chat.open(view)
    page = chat.page
    expect(chat.message(2)).to_contain_text("Reply to: When does the ferry")
    expect(page.get_by_text("Open WebUI writes this conversation.")).to_be_visible()
    chat.page.goto(chat.url)
    chat.is_live()
    asking = threading.Thread(
        target=send,
        args=(RULES[1], FERRY, REPLY, BACK),
        kwargs={"model": "ok-slow:60:0.05"},
    )
    asking.start()
    expect(chat.live_text()).to_contain_text("word3")
    expect(chat.message(3)).to_contain_text("the last one come back")
    expect(chat.open_sheet("system")).to_contain_text("It is 10:00.")
    asking.join()
    expect(chat.in_state("done")).to_have_count(2)
    chat.act(4, "⋯")
    chat.act(4, "More…")
    chat.message(4).get_by_role("link", name="Which conversation, and why").click()
    expect(page.get_by_text("Your client changed its instructions")).to_be_visible()
    expect(page.locator(".diff ins").first).to_have_text("10:00")
    is_clean(page)
    told = " ".join(f"word{n}" for n in range(1, 61))
    send(SUMMARY, BACK, {"role": "assistant", "content": told}, FERRY)
    page.locator("p.meta a").first.click()
    chat.act(7, "⋯")
    chat.act(7, "More…")
    chat.message(7).get_by_role("link", name="Which conversation, and why").click()
    expect(page.get_by_text("Your client forgot this")).to_be_visible()
    page.locator(".user-menu > summary").click()
    page.locator(".user-menu").get_by_role("button", name="简体中文").click()
    expect(page.get_by_text("你的客户端忘记了这些")).to_be_visible()
    is_clean(page)
    page.get_by_role("link", name=re.compile("#1")).click()
    expect(chat.message(1)).to_be_in_viewport()
    expect(page.locator(".branched")).to_contain_text("属于哪个对话")


def test_activity_of_a_client_is_shown_below_its_messages(open_page, slow_site, send):
    session = {"x_claude_code_session_id": "of-this-test"}
    # No words of the other test, whose conversation has the same owner.
    asked = {"role": "user", "content": "Which boats go to the island of Naoshima?"}
    reply = {"role": "assistant", "content": f"Reply to: {asked['content']}"}
    more = {"role": "user", "content": "And which of them take a bicycle along?"}
    view = send(RULES[0], asked, **session)["x-windowpane-view"]
    chat = open_page(slow_site, is_home=False)
    chat.open(view)
    page = chat.page
    page.goto(chat.url)
    chat.is_live()
    # It hangs up in the middle.
    seen = threading.Event()
    slow = {"model": "ok-slow:2000:0.05", "until": seen, **session}
    hanging = threading.Thread(
        target=send, args=(RULES[1], asked, reply, more), kwargs=slow
    )
    hanging.start()
    expect(chat.live_text()).to_contain_text("word2")
    expect(chat.message(3)).to_contain_text("Your client changed its instructions.")
    seen.set()
    hanging.join()
    ended = page.locator(".turn-end")
    expect(ended).to_contain_text("Stopped")
    expect(ended).to_contain_text("The client stopped reading")
    expect(chat.message(4)).to_contain_text("word1 word2")
    # An agent of it.
    send(
        {"role": "user", "content": "Look for ferries of the night."},
        x_claude_code_agent_id="agent-1",
        **session,
    )
    expect(chat.message(3)).to_contain_text("Agents beside this:")
    chat.message(3).get_by_role("link", name="Look for ferries").click()
    expect(page.locator(".branched")).to_contain_text("An agent beside")
    is_clean(page)
