"""A reply tried again in another way: the words stream in beside it, and what can be
done with them, in both languages and themes, wide and on a phone.
"""

import json
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from tests.patience import PATIENCE

from .test_access import is_clean

pytestmark = pytest.mark.browser

NOTE_MARKS = """() => {
  window.marks = [];
  const note = () => document.querySelectorAll(".trial .mark").forEach(
    (mark) => window.marks.push(mark.textContent)
  );
  new MutationObserver(note).observe(
    document.querySelector("#dialog"), { childList: true, subtree: true }
  );
}"""


def test_a_reply_is_tried_again_beside_itself(slow_chat):
    chat, page = slow_chat, slow_chat.page
    chat.say("My budget is 3,200.")
    chat.act(2, "⋯")
    chat.act(2, "Try again differently…")
    dialog = page.locator("#dialog")
    expect(dialog.get_by_text("Nothing was tried yet.")).to_be_visible()
    # Four things to choose from; the rest is folded.
    shown = dialog.locator(".trial-form :is(select, input, textarea):visible")
    expect(shown).to_have_count(4)
    dialog.locator(".trial-more > summary").click()
    dialog.get_by_label("Change one message").select_option("edit")
    expect(dialog.get_by_label("New words")).to_have_value("My budget is 3,200.")
    dialog.get_by_label("New words").fill("My budget is 900.")
    # Noted by the page itself: on a busy machine it can be gone before the test looks.
    page.evaluate(NOTE_MARKS)
    dialog.get_by_role("button", name="Try", exact=True).click()
    trial = dialog.locator(".trial").first
    expect(trial.locator(".body .plain, .body p").first).not_to_be_empty()
    expect(trial).to_contain_text("SHA-256")
    expect(trial.locator(".mark")).to_have_text("Complete")
    # Words of a machine that had no time to draw them meanwhile come all at once.
    assert page.evaluate("window.marks[0]") in ("Waiting", "Writing")
    is_clean(page, "#dialog")
    trial.get_by_role("button", name="Use this for the next message only").click()
    expect(chat.right.locator(".varied")).to_contain_text("message #1 reworded")
    chat.say("And now?")
    chat.act(4, "What the model saw")
    expect(chat.right.locator(".as-sent .varied")).to_contain_text("reworded")
    chat.act(2, "⋯")
    chat.act(2, "Try again differently…")
    expect(page.locator("#turns .message")).to_have_count(4)
    opened = page.url
    dialog.get_by_role("button", name="Make it the reply").click()
    page.wait_for_url(lambda url: url.split("?")[0] != opened.split("?")[0])
    chat.is_live()
    expect(page.locator("#turns .message")).to_have_count(2)
    page.locator(".user-menu > summary").click()
    page.locator(".user-menu").get_by_role("button", name="简体中文").click()
    chat.act(2, "⋯")
    chat.act(2, "换一种方式重试…")
    expect(dialog.get_by_role("heading", name="换一种方式重试回复 #2")).to_be_visible()


def test_conversation_with_a_trial_is_imported_again(chat):
    page = chat.page
    chat.say("My budget is 3,200.")
    page.locator(".sheet:has(.part-system) > .switch").click()
    page.locator("#desk").get_by_role("button", name="Ask again").click()
    expect(page.locator(".beside .trial .mark")).to_have_text("Complete")
    exported = page.request.get(f"{chat.url}export.json").json()
    # What this site has already is not imported.
    exported["conversation"]["uuid"] = str(uuid4())
    page.goto(f"{chat.site.url}/import/")
    body = json.dumps(exported).encode()
    file = {"name": "export.json", "mimeType": "application/json", "buffer": body}
    page.set_input_files("[name=file]", file)
    page.get_by_role("button", name="Import", exact=True).click()
    outcome = page.get_by_text("1 conversation imported")
    expect(outcome).to_be_visible(timeout=60_000 * PATIENCE)
    expect(page.locator("main")).not_to_contain_text("Left out")
