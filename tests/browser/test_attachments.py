"""Files beside the message box and on their message, as a user uses them."""

import re

import pytest
from playwright.sync_api import expect

from tests.chatsite.features.attachments import pdfs
from tests.chatsite.features.attachments.documents import files
from tests.chatsite.features.attachments.long_files.scenes import SECRET, long_text

from .test_access import is_clean

pytestmark = pytest.mark.browser
NOTES = {
    "name": "notes.md",
    "mimeType": "text/markdown",
    "buffer": b"# Notes\nThe gate code is 4711.\n",
}
PASTE = """([text]) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    const options = { clipboardData, bubbles: true, cancelable: true };
    const event = new ClipboardEvent("paste", options);
    document.getElementById("text").dispatchEvent(event);
}"""
DROP = """([name, text]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([text], name));
    const options = { dataTransfer, bubbles: true, cancelable: true };
    const target = document.getElementById("text");
    target.dispatchEvent(new DragEvent("dragover", options));
    target.dispatchEvent(new DragEvent("drop", options));
}"""


# A file over the page, and what is said of it.
OVER = """() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([""], "a.txt"));
    const event = new DragEvent("dragover", { dataTransfer, bubbles: true });
    document.body.dispatchEvent(event);
}"""
SAID_BESIDE = (
    "getComputedStyle(document.getElementById('attachments'), '::after').content"
)


def attached(page):
    return page.locator("#attachments .attached")


def attach(page, *files):
    page.locator("#attach-files").set_input_files([*files])


class TestInAConversation:
    def test_a_chosen_file_becomes_a_card_of_its_message(self, chat):
        attach(chat.page, NOTES)
        expect(attached(chat.page)).to_contain_text("tokens")
        chat.say("What is the gate code?")
        expect(attached(chat.page)).to_have_count(0)
        card = chat.message(1).locator(".attachment")
        expect(card).to_contain_text("notes.md")
        expect(card.locator("pre")).to_be_hidden()
        card.locator("summary").click()
        expect(card.locator("pre")).to_contain_text("The gate code is 4711.")
        assert chat.text_of(1) == "What is the gate code?"
        with chat.page.expect_download() as found:
            card.get_by_role("link").click()
        assert found.value.path().read_bytes() == NOTES["buffer"]

    def test_name_of_a_file_stays_on_its_line(self, chat):
        names = ("contract.txt", "bookings-of-the-year.csv", "a long name of 2026.md")
        for name in names:
            attach(chat.page, {**NOTES, "name": name})
        expect(attached(chat.page)).to_have_count(len(names))
        for card in attached(chat.page).all():
            expect(card).to_contain_text("tokens")
            assert card.bounding_box()["height"] < 40

    def test_a_pdf_is_read_on_the_server(self, chat):
        data = pdfs.make("The gate code is 4711.", "Second page")
        attach(chat.page, {**NOTES, "name": "paper.pdf", "buffer": data})
        expect(attached(chat.page)).to_contain_text("tokens")
        chat.say("What is the gate code?")
        said = chat.transcript()[0]
        place = said["attachments"][0]
        text = said["text"][place["start"] : place["end"]]
        assert text == "The gate code is 4711.\n\nSecond page"

    def test_a_document_is_read_and_a_false_one_explained(self, chat, errors):
        page = chat.page
        page.set_viewport_size({"width": 390, "height": 844})
        attach(page, {**NOTES, "name": "plan.docx", "buffer": b"no document"})
        refused = page.locator("#attachments, #composer-error, #notice")
        expect(
            refused.get_by_text("plan.docx is not what its name says")
        ).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        is_clean(page)
        errors.clear()
        page.reload()
        data = files.make_docx("The gate code is 4711.")
        attach(page, {**NOTES, "name": "plan.docx", "buffer": data})
        expect(attached(page)).to_contain_text("tokens")
        # A short name is not broken, also on a phone.
        assert attached(page).locator(".name").bounding_box()["height"] < 30
        chat.say("What is the gate code?")
        card = chat.message(1).locator(".attachment")
        card.locator("summary").click()
        expect(card.locator("pre")).to_have_text("The gate code is 4711.")

    def test_a_long_paste_becomes_a_file_and_a_short_one_stays(self, chat):
        chat.page.evaluate(PASTE, ["short"])
        expect(attached(chat.page)).to_have_count(0)
        chat.page.evaluate(PASTE, ["A line of a log.\n" * 400])
        expect(attached(chat.page)).to_contain_text("Pasted text.txt")
        expect(attached(chat.page)).to_contain_text("tokens")
        expect(chat.box).to_have_value("")
        # Nothing else has to be typed.
        chat.box.press("Enter")
        expect(chat.message(1).locator(".attachment")).to_be_visible()
        assert chat.transcript()[0]["attachments"][0]["name"] == "Pasted text.txt"

    def test_a_paste_that_is_refused_comes_back_as_text(self, chat, errors):
        chat.page.route(
            "**/attachments/",
            lambda route: route.fulfill(
                status=429, json={"error": "too_many", "detail": "Send some first."}
            ),
        )
        text = "A line of a log.\n" * 400
        chat.page.evaluate(PASTE, [text])
        expect(chat.box).to_have_value(text)
        expect(chat.error).to_have_text("Send some first.")
        expect(attached(chat.page)).to_have_count(0)
        errors.clear()

    def test_a_paste_without_a_connection_is_not_lost(self, chat, errors):
        chat.page.route("**/attachments/", lambda route: route.abort())
        chat.page.evaluate(PASTE, ["A line of a log.\n" * 400])
        expect(attached(chat.page)).to_contain_text("Not uploaded")
        chat.page.unroute("**/attachments/")
        # The draft has it, also where the tab was closed meanwhile.
        chat.page.reload()
        expect(attached(chat.page)).to_contain_text("tokens")
        errors.clear()

    def test_a_lost_upload_can_be_tried_again(self, chat, errors):
        chat.page.route("**/attachments/", lambda route: route.abort())
        attach(chat.page, NOTES)
        expect(attached(chat.page)).to_contain_text("Not uploaded")
        chat.page.unroute("**/attachments/")
        attached(chat.page).get_by_role("button", name="Try again").click()
        expect(attached(chat.page)).to_contain_text("tokens")
        errors.clear()

    def test_a_dropped_file_is_attached_and_shown_on_the_right(self, chat):
        chat.page.evaluate(OVER)
        assert chat.page.evaluate(SAID_BESIDE) == '"Drop files here"'
        chat.page.evaluate(DROP, ["prices.csv", "lamp,12\nzebra,34\n"])
        expect(attached(chat.page)).to_contain_text("prices.csv")
        expect(chat.right).to_contain_text("zebra,34")

    def test_a_refused_file_says_why_and_what_to_do(self, chat, errors):
        attach(chat.page, {**NOTES, "name": "a.zip", "buffer": b"PK\x03\x04...."})
        expect(attached(chat.page)).to_contain_text("can't read this kind of file")
        chat.box.fill("Read it")
        chat.box.press("Enter")
        expect(chat.error).to_contain_text("Can't be attached: a.zip")
        expect(chat.box).to_have_value("Read it")
        chat.page.get_by_role("button", name="Remove: a.zip").click()
        expect(chat.box).to_be_focused()
        chat.say("Read it")
        # The browser itself notes an answer of 400.
        assert len(errors) == 1
        errors.clear()

    def test_refused_files_do_not_hold_a_message_back(self, chat, errors):
        names = ("a.zip", "b.zip")
        bad = [{**NOTES, "name": name, "buffer": b"PK\x03\x04...."} for name in names]
        attach(chat.page, NOTES, *bad)
        refused = chat.page.locator("#attachments .refused")
        expect(refused).to_have_count(2)
        chat.box.fill("Read it")
        chat.box.press("Enter")
        expect(chat.error).to_contain_text("Can't be attached: a.zip, b.zip")
        chat.error.get_by_text("Remove and send").click()
        expect(chat.in_state("done")).to_have_count(1)
        expect(chat.error).to_be_empty()
        expect(attached(chat.page)).to_have_count(0)
        assert chat.text_of(1) == "Read it"
        expect(chat.message(1).locator(".attachment")).to_contain_text("notes.md")
        errors.clear()

    def test_message_waits_for_a_file_that_is_still_read(self, chat, errors):
        chat.page.route("**/attachments/", lambda route: None)
        attach(chat.page, NOTES)
        chat.box.fill("Read it")
        chat.box.press("Enter")
        expect(chat.error).to_contain_text("A file is not attached yet")
        expect(chat.error.get_by_role("button")).to_have_count(0)

    def test_files_outlive_a_reload_with_the_draft(self, chat):
        attach(chat.page, NOTES)
        expect(attached(chat.page)).to_contain_text("tokens")
        chat.page.reload()
        expect(attached(chat.page)).to_contain_text("notes.md")
        chat.is_live()
        chat.say("Look")
        assert len(chat.transcript()[0]["attachments"]) == 1

    def test_an_edit_keeps_the_files_of_the_message(self, chat):
        attach(chat.page, NOTES)
        expect(attached(chat.page)).to_contain_text("tokens")
        chat.say("First wording")
        chat.replace(1)
        expect(chat.box).to_have_value("First wording")
        expect(chat.page.locator("#attach")).to_be_hidden()
        chat.box.fill("Second wording")
        chat.box.press("Enter")
        expect(chat.message(3).locator(".attachment")).to_contain_text("notes.md")
        expect(chat.page.locator("#attach")).to_be_visible()

    def test_attachment_is_reached_by_keyboard_and_named_for_screen_readers(self, chat):
        attach(chat.page, NOTES)
        expect(attached(chat.page)).to_contain_text("tokens")
        expect(chat.page.locator("#attachments-status")).to_have_text(
            "notes.md: attached"
        )
        button = chat.page.get_by_role("button", name="Attach files")
        with chat.page.expect_file_chooser():
            button.press("Enter")
        chat.page.get_by_role("button", name="Remove: notes.md").press("Enter")
        expect(attached(chat.page)).to_have_count(0)

    def test_a_long_file_says_how_much_of_it_the_model_gets(self, chat):
        lines = "\n".join(f"Line {n}: lamp {n} costs {n} euros." for n in range(3000))
        attach(chat.page, {**NOTES, "buffer": lines.encode()})
        expect(attached(chat.page)).to_contain_text("tokens")
        chat.say("What does lamp 1234 cost?")
        told = chat.message(1).locator(".attachment-sent")
        expect(told).to_have_text(re.compile(r"[\d,]+ of [\d,]+ characters"))


def test_the_first_message_of_a_conversation_can_have_files(open_page, site):
    page = open_page(site).page
    page.goto(f"{site.url}/")
    attach(page, NOTES)
    expect(attached(page)).to_contain_text("tokens")
    page.locator("#text").press("Enter")
    expect(page.locator("#message-1 .attachment")).to_contain_text("notes.md")
    page.goto(f"{site.url}/")
    expect(attached(page)).to_have_count(0)


def test_home_page_sends_a_message_when_attaching_a_file_fails(open_page, site, errors):
    page = open_page(site).page
    page.goto(f"{site.url}/")
    attach(page, {**NOTES, "name": "a.zip", "buffer": b"PK\x03\x04...."})
    expect(page.locator("#attachments .refused")).to_have_count(1)
    page.locator("#text").fill("Hello")
    page.locator("#text").press("Enter")
    page.get_by_text("Remove and send").click()
    expect(page.locator("#message-1")).to_contain_text("Hello")
    errors.clear()


def test_the_cards_have_no_fault_of_access(chat):
    attach(chat.page, NOTES)
    expect(attached(chat.page)).to_contain_text("tokens")
    chat.say("What is the gate code?")
    chat.message(1).locator(".attachment summary").click()
    attach(chat.page, NOTES, {**NOTES, "name": "b.txt"})
    expect(attached(chat.page).last).to_contain_text("tokens")
    # What a message offers fades out, and is no text meanwhile.
    chat.page.mouse.move(0, 0)
    expect(chat.message(1).locator(".actions")).to_have_css("opacity", "0")
    is_clean(chat.page)


TABLE = "商品,価格\n机,8000\n椅子,3500\n"


class TestQuestion:
    def ask(self, page):
        data = TABLE.encode("euc_jp")
        attach(page, {**NOTES, "name": "prices.csv", "buffer": data})
        readings = attached(page).get_by_role("group").get_by_role("button")
        expect(readings.filter(has_text="商品,価格")).to_have_count(1)
        return readings

    def test_file_in_doubt_is_read_as_chosen(self, chat, errors):
        readings = self.ask(chat.page)
        expect(attached(chat.page)).to_contain_text("Which reading is right?")
        expect(chat.page.locator("#attachments-status")).to_have_text(
            "prices.csv: Which reading is right?"
        )
        chat.box.fill("What does the table cost?")
        chat.box.press("Enter")
        expect(chat.error).to_contain_text("Choose how the file is read first")
        # The keyboard chooses, also after the page was reloaded.
        chat.page.reload()
        readings.filter(has_text="EUC-JP").press("Enter")
        expect(attached(chat.page)).to_contain_text("EUC-JP")
        expect(readings).to_have_count(0)
        expect(
            chat.page.get_by_role("button", name="Remove: prices.csv")
        ).to_be_focused()
        chat.is_live()
        chat.say("What does the table cost?")
        said = chat.transcript()[0]
        place = said["attachments"][0]
        assert said["text"][place["start"] : place["end"]] == TABLE
        # The browser itself notes the answer of 409.
        errors.clear()

    def test_question_can_be_removed(self, chat, errors):
        readings = self.ask(chat.page)
        chat.page.get_by_role("button", name="Remove: prices.csv").click()
        expect(readings).to_have_count(0)
        chat.say("Hello")
        errors.clear()

    def test_question_fits_a_phone_and_has_no_fault_of_access(self, chat, errors):
        chat.page.set_viewport_size({"width": 390, "height": 844})
        self.ask(chat.page)
        assert chat.page.evaluate("document.documentElement.scrollWidth") <= 390
        is_clean(chat.page)
        errors.clear()


class TestLongFile:
    def test_a_sentence_deep_in_it_is_beside_the_reply_with_its_place(self, chat):
        text = long_text(SECRET, chars=400_000)
        attach(chat.page, {**NOTES, "name": "book.md", "buffer": text.encode()})
        expect(attached(chat.page)).to_contain_text("tokens")
        chat.say("Here is a book.")
        card = chat.message(1).locator(".attachment")
        expect(card).to_contain_text(f"{len(text):,} characters")
        with chat.page.expect_download() as found:
            card.locator("summary").click()
            card.get_by_role("link").click()
        assert found.value.path().read_text() == text

        chat.say("Which key opens the vault of Marlow?")
        chat.act(4, "What the model saw")
        expect(chat.right).to_contain_text("As sent for reply #4")
        expect(chat.right).to_contain_text("Exactly what was sent")
        quoted = chat.open_sheet("recalled").locator("[data-key^=passage-]")
        expect(quoted.locator("bdi")).to_have_text("book.md")
        quoted.locator("summary").click()
        expect(quoted.locator("pre")).to_contain_text(SECRET)
        place = quoted.locator("summary").inner_text().split()[-1]
        start, end = (int(each.replace(",", "")) for each in place.split("–"))
        assert quoted.locator("pre").text_content() == text[start:end]
        is_clean(chat.page)
