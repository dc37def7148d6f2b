"""A newcomer: types at once, imports a chat, looks for what was said long ago."""

import json

import pytest
from playwright.sync_api import expect

from .written import write_long

pytestmark = pytest.mark.browser


def import_talk(chat, name, texts):
    """Bring in a conversation of people and assistants in turn, and open it."""
    talk = [
        {
            "sender": ("human", "assistant")[n % 2],
            "text": text,
            "created_at": "2023-05-06T12:00:00Z",
        }
        for n, text in enumerate(texts)
    ]
    file = {"uuid": name, "name": name, "chat_messages": talk}
    chat.page.goto(f"{chat.site.url}/import/")
    chat.page.set_input_files(
        "[name=file]",
        {
            "name": "conversations.json",
            "mimeType": "application/json",
            "buffer": json.dumps([file]).encode(),
        },
    )
    chat.page.get_by_role("button", name="Import", exact=True).click()
    chat.page.get_by_role("link", name=name, exact=True).click()
    chat.is_live()


def types_into_the_box(chat):
    expect(chat.box).to_be_focused()
    chat.page.wait_for_load_state()
    chat.page.keyboard.type("Typed at once")
    expect(chat.box).to_have_value("Typed at once")
    chat.box.fill("")


def test_the_message_box_takes_what_is_typed_first(open_page, site):
    chat = open_page(site, is_home=False)
    chat.create()
    types_into_the_box(chat)
    chat.page.reload()
    chat.is_live()
    types_into_the_box(chat)
    chat.page.click(".sidebar .new")
    expect(chat.page).to_have_url(f"{site.url}/")
    types_into_the_box(chat)


@pytest.fixture(scope="module")
def fresh(make_site):
    """An empty database, and two models."""
    with make_site(DEMO_TOKENS_PER_SECOND="50", CHAT_MODELS="another-model") as running:
        yield running


def test_three_keys_lead_from_an_empty_database_to_the_first_word(open_page, fresh):
    chat = open_page(fresh)
    rows = chat.page.locator("#conversation-list .row")
    before = rows.count()
    for key in ("H", "i", "Enter"):
        chat.page.keyboard.press(key)
    expect(chat.page.locator("#turns .assistant .body")).not_to_be_empty()
    expect(chat.message(1).locator(".body")).to_have_text("Hi")
    expect(rows).to_have_count(before + 1)
    # Nothing of it is left on the page that it began on.
    chat.page.click(".sidebar .new")
    expect(rows).to_have_count(before + 1)
    expect(chat.box).to_have_value("")


def test_model_is_changed_beside_the_message_box(open_page, fresh, errors):
    one = open_page(fresh, is_home=False)
    one.create()
    other = open_page(fresh, context=one.page.context, is_home=False)
    other.open(one.url)
    models = [tab.page.locator("#model") for tab in (one, other)]
    models[0].select_option("another-model")
    expect(one.page.locator("#notice")).to_contain_text("another-model writes")
    for model in models:
        expect(model).to_have_value("another-model")
    one.page.locator("#notice").get_by_text("Undo").click()
    for model in models:
        expect(model).to_have_value("demo")
    one.page.route("**/model/", lambda route: route.abort())
    models[0].select_option("another-model")
    expect(one.page.locator("#notice [role=alert]")).to_be_visible()
    expect(models[0]).to_have_value("demo")
    errors.clear()  # of the request that was cut off


def test_message_box_has_the_whole_width_of_a_phone(open_page, fresh):
    chat = open_page(fresh, width=390)
    has_the_whole_width(chat)
    chat.create()
    has_the_whole_width(chat)


def has_the_whole_width(chat):
    box = chat.page.locator("#composer .box").bounding_box()
    assert chat.box.bounding_box()["width"] > box["width"] - 40
    chat.box.fill("A sentence of twenty words. " * 4)
    text = chat.box.bounding_box()
    below = [chat.page.locator(part).bounding_box() for part in ("#attach", "#model")]
    assert {part["y"] > text["y"] + text["height"] - 1 for part in below} == {True}
    chat.box.fill("")


def test_home_page_keeps_a_draft_and_stores_it_when_it_is_sent(open_page, site, errors):
    chat = open_page(site)
    rows = chat.page.locator("#conversation-list .row")
    before = rows.count()
    chat.box.fill("Half a thought")
    chat.page.reload()
    expect(chat.box).to_have_value("Half a thought")
    for _ in range(2):
        chat.page.click(".sidebar .new")
    expect(chat.box).to_have_value("Half a thought")
    assert rows.count() == before
    # One that does not get through, and one that is refused.
    chat.page.route("**/c/", lambda route: route.abort())
    chat.box.press("Enter")
    expect(chat.page.locator("#notice [role=alert]")).to_contain_text("No connection")
    chat.page.unroute("**/c/")
    errors.clear()  # of the request that was cut off
    chat.box.fill("x" * 32_001)
    chat.box.press("Enter")
    expect(chat.error).to_contain_text("longer than the limit")
    chat.box.fill("Half a thought")
    # Two chips; the second says what is chosen.
    expect(chat.page.locator(".options > .option")).to_have_count(2)
    options = chat.page.locator(".option > summary")
    expect(options).to_have_text("OptionsLayered")
    options.click()
    for name in ("Tell the time", "Calculate"):
        chat.page.get_by_label(name, exact=True).check()
    chat.page.get_by_label("System prompt").fill("Be brief.")
    expect(options).to_have_text("OptionsLayered, Tell the time, Calculate, Be brief.")
    chat.box.press("Enter")
    chat.is_live()
    expect(chat.message(1)).to_contain_text("Half a thought")
    expect(chat.right).to_contain_text("The model may call: Tell the time, Calculate")


def test_a_key_beside_every_field_goes_to_the_message_box(open_written):
    chat = open_written("Hello")
    page = chat.page
    chat.message(2).locator("a.seq").focus()
    page.keyboard.type("Typed on a link")
    expect(chat.box).to_have_value("Typed on a link")
    page.click("#find > summary")
    expect(page.locator("#find [name=q]")).to_be_focused()
    page.keyboard.type("Hello")
    expect(page.locator("#find [name=q]")).to_have_value("Hello")
    page.keyboard.press("Escape")
    page.locator("#context-body").focus()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    expect(chat.box).to_have_value("Typed on a link")


def test_the_front_door_fits_a_small_phone(open_page, site):
    chat = open_page(site, width=320, height=640)
    expect(chat.box).to_be_in_viewport()
    assert chat.page.evaluate("document.documentElement.scrollWidth") <= 320
    chat.page.click("#open-sidebar")
    expect(chat.page.locator("#search")).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(chat.page.locator("#open-sidebar")).to_be_focused()
    expect(chat.page.locator("#search")).to_be_hidden()


def test_imported_replies_lead_to_no_request(open_page, site):
    chat = open_page(site)
    import_talk(chat, "Brought along", ["One?", "One.", "Two?", "Two."])
    reply = chat.message(2)
    reply.hover()
    expect(
        reply.get_by_text("Imported – no record of what the model saw")
    ).to_be_visible()
    expect(reply.get_by_text("What the model saw", exact=True)).to_have_count(0)
    expect(reply.locator(".who")).to_have_text("Claude")
    expect(reply.locator("header")).not_to_contain_text("Imported")
    expect(reply.locator("time")).to_contain_text("2023")
    expect(chat.page.locator(".branched")).to_contain_text("Imported from Claude on")
    expect(chat.page.locator("#shown-reply option")).to_have_text(["Next turn"])
    expect(chat.page.get_by_role("button", name="Replay")).to_have_count(0)

    chat.say("And now?")
    expect(chat.page.locator("#shown-reply option")).to_have_text(
        ["Next turn", "Reply #6"]
    )
    expect(chat.message(6).locator(".who")).to_have_text("Demo model")
    chat.act(6, "What the model saw")
    expect(chat.page.locator("#shown-reply")).to_have_value("6")
    assert (
        chat.message(2)
        .get_by_text("Imported – no record of what the model saw")
        .count()
        == 1
    )


def test_a_hit_far_up_loads_the_page_around_it(open_page, site, write_in):
    chat = open_page(site, is_home=False)
    chat.open(site.url + write_in(site, write_long, 100))
    assert chat.message(21).count() == 0
    chat.box.fill("Half a thought")
    chat.page.click("#find > summary")
    chat.page.fill("#find [name=q]", "Nemo21")
    chat.page.locator("#find a.seq").click()
    chat.page.wait_for_url("**/?at=21#message-21")
    chat.is_live()
    expect(chat.message(21)).to_be_in_viewport()
    expect(chat.page.locator(".message.aimed")).to_contain_text("Nemo21")
    expect(chat.box).to_have_value("Half a thought")


def test_a_hit_on_the_page_is_shown_without_loading_it_again(open_written):
    others = (f"Other things {number}. " + "Words. " * 200 for number in range(3))
    chat = open_written("The heron stood there. " + "And so on. " * 300, *others)
    chat.page.evaluate("window.still = true")
    chat.page.click("#find > summary")
    chat.page.fill("#find [name=q]", "heron")
    hit = chat.page.locator("#find a.seq", has_text="#1")
    for _ in range(2):
        chat.page.evaluate("document.getElementById('find').open = true")
        hit.last.click()
        expect(hit.last).to_be_hidden()
        expect(chat.message(1)).to_be_in_viewport()
        expect(chat.page.locator(".message.aimed")).to_contain_text("heron")
        chat.page.evaluate("document.getElementById('transcript').scrollTop = 1e6")
    assert chat.page.evaluate("window.still")
