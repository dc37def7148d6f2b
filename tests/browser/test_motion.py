"""Motion that explains: what was summarised or pinned comes to its sheet, and sheets
grow and shrink under the slider."""

import pytest
from playwright.sync_api import expect

from tests.patience import wait_for

from .test_memory import compact_up_to, open_menu, write_summary

pytestmark = pytest.mark.browser
MOTION = "no-preference"


# Motions are noted as they begin: none is still there when a test comes to look.
NOTE = """() => {
    const seen = window.seen = [];
    document.addEventListener("transitionrun", (event) =>
        seen.push(`${event.propertyName} of ${event.target.id}${event.pseudoElement}`));
    document.addEventListener("animationstart", ({ target, animationName }) =>
        seen.push(`${animationName} of ${target.className.replace(" pulse", "")}`));
    new MutationObserver((changes) => {
        const added = changes.flatMap((change) => [...change.addedNodes]);
        const flights = added.filter((node) => node.matches?.(".flight"));
        seen.push(...flights.map((flight) => flight.className));
    }).observe(document.body, { childList: true });
}"""


@pytest.fixture
def talked(open_written):
    chat = open_written("I'm Lance.", "I like tea.", "Hello again.")
    chat.message(6).hover()
    expect(chat.right.locator(".glances .counterpart")).to_have_count(1)
    chat.page.evaluate(NOTE)
    return chat


def moved(chat, what):
    wait_for(lambda: what in chat.page.evaluate("seen"), what=what)


def test_summarised_messages_turn_their_rail_and_fold_into_a_sheet(talked):
    compact_up_to(talked, 4, "They met.")
    for seq in (1, 4):
        moved(talked, f"clip-path of message-{seq}::after")
    moved(talked, "height of weight-summaries")
    moved(talked, "height of weight-window")
    moved(talked, "flight flight-summaries")
    moved(talked, "pulse of part part-summaries")
    expect(talked.page.locator(".flight")).to_have_count(0)


def test_a_pinned_message_flies_to_its_sheet_once(talked):
    compact_up_to(talked, 4, "They met.")
    moved(talked, "flight flight-summaries")
    open_menu(talked, 1, "Pin")
    moved(talked, "flight flight-pinned")
    moved(talked, "pulse of part part-pinned")
    talked.say("One more.")
    seen = talked.page.evaluate("seen")
    assert seen.count("flight flight-pinned") == 1
    assert seen.count("pulse of part part-pinned") == 1


def test_an_edited_summary_pulses(talked):
    compact_up_to(talked, 4, "They met.")
    moved(talked, "pulse of part part-summaries")
    talked.page.evaluate("seen.length = 0")
    talked.open_sheet("summaries")
    write_summary(talked, "They parted.")
    moved(talked, "pulse of part part-summaries")
    assert "flight flight-summaries" not in talked.page.evaluate("seen")


def test_the_replay_morphs_the_stack(talked):
    talked.page.click("[data-replay]")
    slider = talked.page.locator("#moment")
    expect(slider).to_be_focused()
    expect(talked.right).to_contain_text("As sent for reply #6")
    talked.page.evaluate("seen.length = 0")
    slider.press("ArrowLeft")
    moved(talked, "height of weight-window")
    assert not [each for each in talked.page.evaluate("seen") if "flight" in each]


def test_reduced_motion_replaces_movement_by_a_fade(talked):
    talked.page.emulate_media(reduced_motion="reduce")
    compact_up_to(talked, 4, "They met.")
    moved(talked, "fade of part part-summaries")
    seen = talked.page.evaluate("seen")
    assert [each for each in seen if not each.startswith("fade")] == []
