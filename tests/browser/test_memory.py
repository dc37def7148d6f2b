"""The model's view in the user's hands: actions and their undo, both panes."""

import re

import pytest
from playwright.sync_api import expect

from memory import transcript
from tests.chatsite.scenes import talk_in_turns

from .test_access import findings
from .written import find_owner, write_turns

pytestmark = pytest.mark.browser


@pytest.fixture
def talked(open_written):
    """Four turns, nothing compacted."""
    texts = ("I'm Lance.", "I like 红茶.", "The budget is 3,200.", "Hello again.")
    chat = open_written(*texts)
    expect(chat.right).to_contain_text("All 8 messages accounted for")
    return chat


def open_menu(chat, seq, item):
    chat.message(seq).hover()
    chat.message(seq).locator(".message-menu > summary").click()
    chat.message(seq).get_by_text(item, exact=True).click()


def notice(chat):
    return chat.page.locator("#notice")


def write_summary(chat, text):
    """The summary of the right pane, in other words, where it stands."""
    chat.right.locator(".part-summaries [data-write]").first.click()
    chat.right.locator(".in-place textarea").fill(text)
    chat.right.get_by_text("Save as a new version").click()


def compact_up_to(chat, seq, text=None):
    open_menu(chat, seq, "Summarise up to here…")
    dialog = chat.page.locator("#dialog")
    dialog.get_by_text("Draft a summary").click()
    box = dialog.locator("textarea")
    expect(box).to_be_visible()
    if text:
        box.fill(text)
    dialog.get_by_text("Accept", exact=True).click()
    expect(dialog).to_be_hidden()
    # What is redrawn by then would close its menu.
    expect(chat.message(seq)).to_have_attribute("data-place", "summary")


def test_the_latest_turn_can_not_be_compacted(talked):
    for seq, count in ((6, 1), (8, 0)):
        talked.message(seq).hover()
        talked.message(seq).locator(".message-menu > summary").click()
        expect(talked.message(seq).locator(".menu-items")).to_be_visible()
        offered = talked.message(seq).get_by_text("Summarise up to here…")
        expect(offered.locator("visible=true")).to_have_count(count)
        talked.page.keyboard.press("Escape")


def test_a_message_is_left_out_and_comes_back(talked):
    open_menu(talked, 3, "Hide from the model")
    expect(talked.mark(3)).to_have_text("Hidden from the model")
    expect(talked.right).to_contain_text("1 hidden from the model")
    notice(talked).get_by_text("Undo").click()
    expect(talked.mark(3)).to_have_text("In full")


def test_the_notice_comes_after_its_message_was_drawn_again(talked):
    def answer_late(route):
        response = route.fetch()
        expect(talked.mark(3)).to_have_text("Hidden from the model")
        route.fulfill(response=response)

    talked.page.route("**/leave-out/", answer_late)
    open_menu(talked, 3, "Hide from the model")
    notice(talked).get_by_text("Undo").click()
    expect(talked.mark(3)).to_have_text("In full")


def test_a_pinned_message_stays_word_for_word_in_every_tab(talked, open_page, site):
    other = open_page(site, is_home=False)
    other.open(talked.url)
    open_menu(talked, 1, "Pin")
    for each in (talked, other):
        expect(each.message(1)).to_contain_text("Pinned")
    compact_up_to(talked, 4)
    expect(talked.right.locator(".part-pinned")).to_contain_text("I'm Lance.")


def test_a_compaction_is_looked_at_changed_and_undone(talked):
    compact_up_to(talked, 4, "They met. 他们喜欢红茶。")
    expect(talked.mark(3)).to_have_text("Summarised (v1)")
    divider = talked.page.locator(".divider")
    expect(divider).to_contain_text("#1–#4 → v1")
    divider.locator("> summary").click()
    expect(divider.locator(".summary-text")).to_contain_text("他们喜欢红茶")
    expect(talked.right.locator(".summary-text")).to_contain_text("他们喜欢红茶")
    expect(talked.right).to_contain_text("All 8 messages accounted for")
    notice(talked).get_by_text("Undo").click()
    expect(talked.page.locator(".divider")).to_have_count(0)
    expect(talked.mark(3)).to_have_text("In full")


def test_a_summary_is_edited_and_its_history_shows_what_changed(talked):
    compact_up_to(talked, 4, "They met.")
    talked.open_sheet("summaries")
    write_summary(talked, "They parted.")
    dialog = talked.page.locator("#dialog")
    expect(talked.right.locator(".summary-text")).to_have_text("They parted.")
    talked.right.get_by_text("All versions").click()
    dialog.locator(".changes > summary").click()
    expect(dialog.locator(".diff del")).to_have_text("met")
    expect(dialog.locator(".diff ins")).to_have_text("parted")
    dialog.get_by_text("Restore").click()
    expect(talked.right.locator(".summary-text")).to_have_text("They met.")


def test_words_of_ones_own_are_kept_or_come_back(talked):
    compact_up_to(talked, 4, "They met in Nara.")
    words = talked.right.locator(".summary-text")
    expect(words).to_have_text("They met in Nara.")
    open_menu(talked, 3, "Hide from the model")
    dialog = talked.page.locator("#dialog")
    expect(dialog).to_contain_text("Nothing was changed yet")
    expect(dialog).to_contain_text("Your edited summary v1 covers this message")
    dialog.get_by_text("Cancel").click()
    expect(talked.mark(3)).to_have_text("Summarised (v1)")
    open_menu(talked, 3, "Hide from the model")
    dialog.get_by_role("button", name="Hide").click()
    expect(dialog).to_be_hidden()
    expect(notice(talked)).to_contain_text("being written again")
    expect(words).to_have_count(0)
    notice(talked).get_by_text("Undo").click()
    expect(words).to_have_text("They met in Nara.")
    expect(talked.mark(3)).to_have_text("Summarised (v1)")
    open_menu(talked, 3, "Hide from the model")
    dialog.get_by_label("keep my summary").check()
    dialog.get_by_role("button", name="Hide").click()
    expect(notice(talked)).to_contain_text("Your summary stays, as v2.")
    expect(talked.mark(3)).to_have_text("Hidden from the model")
    expect(words).to_have_text("They met in Nara.")


def test_search_finds_words_of_a_hidden_message_in_the_summary(talked):
    compact_up_to(talked, 6, "The budget is 3,200 for all of it.")
    open_menu(talked, 5, "Hide from the model")
    dialog = talked.page.locator("#dialog")
    dialog.get_by_label("keep my summary").check()
    dialog.get_by_role("button", name="Hide").click()
    expect(talked.mark(5)).to_have_text("Hidden from the model")
    talked.page.click("#find > summary")
    talked.page.fill("#find [name=q]", "budget")
    said = talked.page.locator("#found li:has(a[href$='#message-5']) .found-seen")
    expect(said).to_contain_text("Hidden, but summary v2 still says")
    expect(said).not_to_contain_text("The model does not see it")
    said.get_by_role("button", name="Edit v2").click()
    expect(dialog.locator("textarea")).to_have_value(re.compile("3,200"))


def test_deletion_asks_before_it_touches_an_edited_summary(talked):
    compact_up_to(talked, 4, "They met in Nara.")
    talked.message(3).hover()
    talked.message(3).locator(".message-menu > summary").click()
    talked.message(3).get_by_text("Delete the text").click()
    talked.message(3).get_by_role("button", name="Delete permanently").click()
    dialog = talked.page.locator("#dialog")
    expect(dialog).to_contain_text("Nothing was changed yet")
    dialog.get_by_text("Cancel").click()
    expect(talked.message(3)).to_contain_text("红茶")


def test_restored_summary_leaves_a_later_edited_one(talked):
    compact_up_to(talked, 2, "They met.")
    compact_up_to(talked, 4, "They like Nara.")
    words = talked.right.locator(".summary-text")
    expect(words).to_have_text(["They met.", "They like Nara."])
    talked.open_sheet("summaries")
    write_summary(talked, "They met early.")
    expect(words).to_have_text(["They met early.", "They like Nara."])
    talked.right.get_by_text("All versions").click()
    first = talked.page.locator("#dialog .version", has_text="They met.")
    first.get_by_role("button", name="Restore").click()
    expect(words).to_have_text(["They met.", "They like Nara."])


def test_formulas_are_no_facts_that_a_summary_has_to_keep(open_written):
    text = r"For $\lambda_1 = \frac{5}{3}$ see $$\mu \qquad \rho_{12}$$ above."
    chat = open_written(text, "The budget is 3,200.", "Hello again.")
    compact_up_to(chat, 4, "They met.")
    sheet = chat.open_sheet("summaries")
    expect(sheet.locator(".dropped")).to_contain_text("3,200")
    expect(sheet.locator(".dropped")).not_to_contain_text("lambda")
    expect(sheet.locator(".dropped")).not_to_contain_text("frac")


def test_outdated_summary_names_the_reason_and_is_used_again(talked):
    compact_up_to(talked, 4, "They met in Nara.")
    open_menu(talked, 3, "Hide from the model")
    dialog = talked.page.locator("#dialog")
    dialog.get_by_role("button", name="Hide").click()
    # There is no summary in force then, and no sheet of them.
    expect(talked.right.locator(".outline-summaries")).to_be_attached()
    talked.open_about().get_by_text("Summary history").click()
    expect(dialog).to_contain_text("It was written when the model saw #3.")
    dialog.get_by_text("Restore").click()
    expect(talked.right.locator(".summary-text")).to_have_text("They met in Nara.")


def test_summarising_again_says_what_is_lost(talked):
    compact_up_to(talked, 4, "They met.")
    expect(talked.right.locator(".summary-text")).to_have_text("They met.")
    talked.open_sheet("summaries").get_by_text("All versions").click()
    dialog = talked.page.locator("#dialog")
    dialog.get_by_text("Summarise again from scratch").click()
    expect(dialog).to_contain_text("Your edited version v1 will no longer be used.")
    dialog.get_by_role("button", name="Summarise again").click()
    expect(talked.page.locator(".divider")).to_have_count(0)


def test_a_notice_covers_nothing(talked):
    open_menu(talked, 3, "Hide from the model")
    expect(notice(talked)).to_contain_text("no longer sees message #3")
    pill, composer, pane, conversations = (
        talked.page.locator(part).bounding_box()
        for part in ("#notice", "#composer .box", "#context", "#sidebar")
    )
    assert pill["y"] + pill["height"] <= composer["y"]
    assert pill["x"] + pill["width"] <= pane["x"]
    assert pill["x"] >= conversations["x"] + conversations["width"]


def test_a_refusal_keeps_the_text_in_its_field(talked, open_page, site):
    other = open_page(site)
    compact_up_to(talked, 4, "They met.")
    other.open(talked.url)
    for each in (talked, other):
        each.open_sheet("summaries").locator("[data-write]").click()
        each.right.locator(".in-place textarea").fill(f"From {id(each)}")
    talked.right.get_by_text("Save as a new version").click()
    expect(talked.right.locator(".in-place")).to_have_count(0)
    # Its summary is gone from the pane, and what is being written is not.
    expect(other.right.locator(".summary-text")).to_have_text(f"From {id(talked)}")
    other.right.get_by_text("Save as a new version").click()
    expect(notice(other)).to_contain_text("v2 has replaced v1")
    box = other.right.locator(".in-place textarea")
    expect(box).to_have_value(f"From {id(other)}")
    other.right.get_by_text("Save as a new version").click()
    text = talked.right.locator(".summary-text")
    expect(text).to_have_text(f"From {id(other)}")


def test_forgotten_message_is_found_and_restored(talked):
    compact_up_to(talked, 4, "They met.")
    page = talked.page
    page.click("#find > summary")
    page.fill("#find input", "红茶")
    found = page.locator("#found li").filter(has_text="#3")
    expect(found).to_contain_text("says nothing of it")
    found.get_by_text("Pin").click()
    expect(talked.right.locator(".part-pinned")).to_contain_text("红茶")
    expect(found).to_contain_text("In full: it is pinned.")
    notice(talked).get_by_text("Undo").click()
    expect(found).to_contain_text("says nothing of it")


def test_the_right_pane_follows_what_is_typed_and_shows_the_raw_request(talked):
    talked.box.fill("Where is the budget?")
    draft = talked.right.locator(".part-newest")
    expect(draft).to_contain_text("Next message")
    expect(draft).to_contain_text("Where is the budget?")
    talked.box.fill("")
    expect(draft).to_have_count(0)
    talked.open_about().locator(".raw.whole > summary").click()
    expect(talked.right.locator(".raw.whole pre")).to_contain_text('"role": "system"')


def test_panes_go_back_to_any_moment(talked):
    compact_up_to(talked, 4, "They met.")
    talked.page.click("[data-replay]")
    slider = talked.page.locator("#moment")
    # The replay is loaded on first use.
    expect(slider).to_be_focused()
    slider.press("Home")
    expect(talked.right).to_contain_text("As sent for reply #2")
    expect(talked.right.locator(".reading > .meter")).to_have_count(1)
    expect(talked.page.locator("#replayed .message")).to_have_count(2)
    expect(talked.page.locator("#turns")).to_be_hidden()
    # What the header says is of now.
    talked.page.evaluate("document.getElementById('status').textContent = 'Now'")
    expect(talked.page.locator("#status")).to_be_hidden()
    slider.press("End")
    expect(talked.right).to_contain_text("As sent for reply #8")
    talked.page.click("#replay-end")
    expect(talked.page.locator("#turns")).to_be_visible()
    expect(talked.page.locator("#status")).to_be_visible()
    expect(talked.right).to_contain_text("accounted for")


def test_replayed_messages_that_stay_the_same_are_not_drawn_again(talked):
    page, replayed = talked.page, talked.page.locator("#replayed .message")
    page.click("[data-replay]")
    slider = page.locator("#moment")
    expect(slider).to_be_focused()
    expect(replayed).to_have_count(8)
    page.evaluate("document.querySelector('#replayed .message').isKept = true")
    for moment in ("#6", "#4"):
        slider.press("ArrowLeft")
        expect(talked.right).to_contain_text(f"As sent for reply {moment}")
    read_seqs = "nodes => nodes.map(({ dataset }) => dataset.seq)"
    assert replayed.evaluate_all(read_seqs) == ["1", "2", "3", "4"]
    assert replayed.first.evaluate("node => node.isKept")
    # Where the model read it has changed: it was its newest message.
    slider.press("Home")
    expect(replayed.first).to_have_attribute("data-place", "sending")
    assert replayed.evaluate_all(read_seqs) == ["1", "2"]
    slider.press("End")
    expect(replayed).to_have_count(8)
    assert replayed.evaluate_all(read_seqs) == [str(seq) for seq in range(1, 9)]


def test_right_pane_of_a_replay_keeps_its_nodes_and_equals_what_the_server_sends(
    talked,
):
    page, right = talked.page, talked.right
    page.click("[data-replay]")
    slider = page.locator("#moment")
    expect(slider).to_be_focused()
    expect(right).to_contain_text("As sent for reply #8")
    page.evaluate("document.querySelector('#context .part-system').isKept = true")
    # Text, places and addresses, without what scripts add.
    read = """(answer) => {
        const template = document.createElement("template");
        template.innerHTML = answer;
        const { content } = template;
        for (const other of content.querySelectorAll("[hx-swap-oob]")) other.remove();
        const isSent = (node) => !node.closest("time, svg, template");
        const list = (root) => [...root.querySelectorAll("*")].filter(isSent).map(
            (node) => [node.nodeName, node.id, node.className, node.dataset.key,
                node.getAttribute("hx-get"), node.children.length || node.textContent]);
        return [list(document.getElementById("context")), list(content)];
    }"""
    for key, seq in (("ArrowLeft", 6), ("Home", 2), ("ArrowRight", 4), ("End", 8)):
        # The pane may still be loaded once for the reply that was shown before.
        address = re.compile(rf"/moment/\?(?:.*&)?reply={seq}\b")
        with page.expect_response(address) as answered:
            slider.press(key)
        expect(right).to_contain_text(f"As sent for reply #{seq}")
        # A class of htmx marks what was just drawn.
        expect(right.locator(".htmx-settling")).to_have_count(0)
        shown, sent = page.evaluate(read, answered.value.text())
        assert shown == sent
    assert right.locator(".part-system").evaluate("node => node.isKept")


def test_settings_say_what_they_would_do(talked):
    page = talked.page
    talked.memory_settings()
    page.select_option("#policy [name=preset]", "langgraph")
    estimate = page.locator("#policy .estimate")
    expect(estimate).to_contain_text("will summarise messages #1–#6")
    page.locator("#policy").get_by_text("Do not summarise older messages").click()
    expect(estimate).to_contain_text("Nothing to summarise yet")
    page.locator("#policy").get_by_role("button", name="Apply").click()
    expect(talked.right).to_contain_text("never summarises")
    expect(notice(talked)).to_contain_text("LangGraph")
    expect(page.locator("#dialog")).to_be_hidden()
    notice(talked).get_by_text("Undo").click()
    expect(talked.right).to_contain_text("summarises at 4,000 tokens")


def write_long_talk():
    made = transcript.create_conversation(
        find_owner(), title="Trip", model="demo", tools=["calculate", "current_time"]
    )
    talk_in_turns(made, *(f"Hotel {n} in Nara" for n in range(1, 16)))
    return f"/c/{made.uuid}/"


def test_sheets_show_tools_and_the_newest_messages(open_page, site, write_in):
    chat = open_page(site, is_home=False)
    chat.open(site.url + write_in(site, write_long_talk))
    recent = chat.right.locator(".part-window > summary")
    expect(recent).to_contain_text("Hotel 1 in Nara")
    expect(recent).to_contain_text("… 22 more")
    expect(recent).to_contain_text("Reply to: Hotel 15 in Nara")
    sheet = chat.open_sheet("tools")
    sheet.locator("details > summary").first.click()
    expect(sheet.locator("pre").first).to_contain_text('"name": "calculate"')
    shown = chat.json("context.json")
    size = next(each["tokens"] for each in shown["parts"] if each["name"] == "tools")
    expect(sheet.locator("> summary")).to_contain_text(f"{size}")
    total = sum(each["tokens"] for each in shown["parts"])
    expect(chat.right.locator(".tokens-read")).to_contain_text(f"≈ {total:,} tokens")


def test_summary_of_the_user_is_marked_and_keeps_its_height(talked):
    compact_up_to(talked, 4, "**They** met.")
    sheet = talked.right.locator(".part-summaries")
    expect(sheet.locator(".glances")).to_contain_text("They met.")
    sheet.locator("> summary").click()
    write_summary(talked, "They met in Nara.")
    expect(sheet.locator(".summary-block .mark")).to_have_text("by hand")
    sheet.locator("> summary").click()
    expect(sheet.locator(".glances")).to_contain_text("by hand")
    # Beside a draft that is a hundred times as long.
    talked.box.fill("A farewell dinner. " * 1_000)
    expect(talked.right.locator(".part-newest")).to_be_visible()
    assert sheet.bounding_box()["height"] >= 120


def test_dialog_of_a_summary_has_its_field_below_the_label(talked):
    open_menu(talked, 3, "Summarise up to here…")
    dialog = talked.page.locator("#dialog")
    # Its fields are there before it is shown.
    dialog.locator("#focus").wait_for()
    label, field, buttons = (
        dialog.locator(part).bounding_box()
        for part in ("label[for=focus]", "#focus", ".dialog-actions")
    )
    assert label["x"] == field["x"]
    assert field["width"] > dialog.bounding_box()["width"] - 60
    assert buttons["y"] >= field["y"] + field["height"]


def test_draft_of_a_summary_names_what_it_lacks_before_it_is_accepted(
    open_page, slow_site, write_in
):
    chat = open_page(slow_site, is_home=False)
    address = chat.make()
    # The fake model keeps the first 80 characters of each message.
    long = f"{'Well, ' * 15}the budget is 3,200 francs."
    write_in(slow_site, write_turns, address, long, "Thanks")
    chat.open(address)
    open_menu(chat, 2, "Summarise up to here…")
    dialog = chat.page.locator("#dialog")
    dialog.get_by_text("Draft a summary").click()
    lacking = dialog.locator(".dropped")
    expect(lacking.locator("summary")).to_contain_text("Not in the summary: numbers")
    lacking.locator("summary").click()
    expect(lacking).to_contain_text("3,200")
    assert findings(chat.page, "#dialog") == []
