"""Images beside the message box, on their message and in the right pane."""

from base64 import b64encode

import pytest
from playwright.sync_api import expect

from tests.chatsite.features.attachments.images import pictures
from tests.chatsite.features.importing.test_zips import (
    MADE,
    UPLOAD,
    image,
    pack,
    painted,
    shown,
)
from tests.patience import PATIENCE

from .test_access import is_clean
from .test_attachments import attached

pytestmark = pytest.mark.browser
PASTE = """([data, type, name]) => {
    const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File([bytes], name, { type }));
    const options = { clipboardData, bubbles: true, cancelable: true };
    document.getElementById("text").dispatchEvent(new ClipboardEvent("paste", options));
}"""
OPEN = (
    "document.querySelectorAll('#context details').forEach((each) => each.open = true)"
)
WIDTH = "(image) => image.decode().then(() => image.naturalWidth)"


def test_a_pasted_image_is_sent_shown_and_accounted_for(chat):
    photo = b64encode(pictures.make("JPEG", (800, 600))).decode()
    chat.page.evaluate(PASTE, [photo, "image/jpeg", "image.jpg"])
    expect(attached(chat.page)).to_contain_text("800 × 600")
    assert attached(chat.page).locator("img").evaluate(WIDTH) == 480
    chat.say("What is this?")
    expect(chat.message(2)).to_contain_text("I got an image with it (image/jpeg")
    card = chat.message(1).locator(".attachment")
    expect(card).to_contain_text("image.jpg")
    assert card.locator("summary img").evaluate(WIDTH) == 480
    card.locator("summary").click()
    full = card.locator("> img")
    assert full.evaluate(WIDTH) == 800
    # No wider than its message, however small the page is.
    chat.page.set_viewport_size({"width": 390, "height": 844})
    assert full.evaluate("(image) => image.clientWidth <= document.body.clientWidth")
    is_clean(chat.page)
    sent = chat.page.locator("#context-body .sent-image").first
    chat.page.evaluate(OPEN)
    expect(sent).to_contain_text("800 × 600 · 85 tokens")


def test_images_of_an_archive_come_with_their_messages(open_page, site):
    chat = open_page(site)
    item = painted(MADE, last="Here it is.", title="Painted elsewhere")
    item["mapping"]["q"]["message"]["content"] = shown(image(UPLOAD), "Like this")
    files = {
        "conversations.json": [item],
        f"{UPLOAD}-cat.jpg": pictures.make("JPEG", (800, 600), "teal"),
        f"dalle-generations/{MADE}-fox.webp": pictures.make("WEBP", (640, 640)),
    }
    chat.page.goto(f"{site.url}/import/")
    archive = {"name": "chatgpt.zip", "mimeType": "application/zip"}
    chat.page.set_input_files("[name=file]", {**archive, "buffer": pack(files)})
    chat.page.get_by_role("button", name="Import", exact=True).click()
    told = chat.page.get_by_text("2 images were imported with their messages.")
    # A process starts for the file, and one for each image.
    expect(told).to_be_visible(timeout=60_000 * PATIENCE)
    chat.page.get_by_role("link", name="Painted elsewhere", exact=True).click()
    chat.is_live()
    for seq, name in ((1, "cat.jpg"), (4, "fox.webp")):
        card = chat.message(seq).locator(".attachment")
        expect(card).to_contain_text(name)
        assert card.locator("summary img").evaluate(WIDTH) == 480

    chat.say("And now?")
    chat.act(6, "What the model saw")
    expect(chat.right).to_contain_text("Exactly what was sent")
    chat.page.evaluate(OPEN)
    sent = chat.page.locator("#context-body .sent-image")
    expect(sent).to_have_count(2)
    expect(sent.nth(0)).to_contain_text("cat.jpg 800 × 600 · 85 tokens")
    expect(sent.nth(1)).to_contain_text("fox.webp only its name is sent")
    is_clean(chat.page)
