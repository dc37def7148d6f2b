"""Evidence from the menu to a reader without the site: verify.html opened from a disk.

Both verifiers say the same, also of changed files.
"""

import base64
import hashlib
import io
import json
import re
import zipfile

import pytest
from playwright.sync_api import expect

from chatsite.contrib.evidence import verify
from tests.chatsite.contrib.evidence.mutations import Mutations

from .conftest import open_tab
from .test_access import WIDE, is_clean
from .test_memory import open_menu

pytestmark = pytest.mark.browser
TEXTS = ("My budget is 3,200 euros.", "I am allergic to nuts.", "What is my budget?")
SAMPLE = 200
CHECK = """async ([files, keys]) => {
    const read = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const answers = [];
    for (const file of files) {
        const answer = await verify(read(file), read(keys));
        answers.push(answer.slice(0, 2));
    }
    return answers;
}"""


@pytest.fixture
def owner(open_written):
    return open_written(*TEXTS)


@pytest.fixture
def folder(owner, tmp_path):
    """The unpacked archive of the conversation, as its owner saves it."""
    page = owner.page
    page.locator("header.bar .menu > summary").click()
    page.get_by_text("Export…").click()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download evidence").click()
    with zipfile.ZipFile(saved.value.path()) as archive:
        archive.extractall(tmp_path)
    page.keyboard.press("Escape")
    return tmp_path


@pytest.fixture
def reader(take_context, folder, errors):
    """The page of the archive in a browser without a network."""
    context = take_context()
    context.set_offline(True)
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"file://{folder}/verify.html")
    return page


def choose_files(reader, folder, name="evidence.json"):
    reader.get_by_label("Evidence:").set_input_files(folder / name)
    reader.get_by_label("Keys of the site:").set_input_files(
        folder / "windowpane-keys.json"
    )


def test_reader_sees_the_sentence_and_every_message(reader, folder):
    choose_files(reader, folder)
    status = reader.get_by_role("status")
    expect(status).to_contain_text("In order: signed by http")
    expect(status).to_contain_text("the request rebuilds to its hash")
    expect(status).to_contain_text("6 of 6 messages accounted for: 6 to be sent")
    rows = reader.locator("tbody tr")
    expect(rows).to_have_count(6)
    expect(rows.nth(2)).to_contain_text("I am allergic to nuts.")


def test_reader_lists_what_was_not_sent(owner, reader, folder):
    choose_files(reader, folder)
    places = reader.get_by_label("Show:")
    rows = reader.locator("tbody tr:visible")
    places.select_option("sent: 6")
    expect(rows).to_have_count(6)
    places.select_option("not sent: 0")
    expect(rows).to_have_count(0)
    places.select_option("all 6 messages")
    expect(rows).to_have_count(6)


def test_changed_message_is_named(reader, folder):
    data = (folder / "evidence.json").read_bytes()
    (folder / "changed.json").write_bytes(data.replace(b"to nuts", b"to milk"))
    choose_files(reader, folder, "changed.json")
    expect(reader.get_by_role("status")).to_contain_text("changed: dialog 3")
    expect(reader.locator("tbody tr")).to_have_count(0)


def test_verifiers_agree(reader, folder):
    data = (folder / "evidence.json").read_bytes()
    keys = (folder / "windowpane-keys.json").read_bytes()
    mutations = Mutations(data, 56)
    files = [data, *(mutations.make() for _ in range(SAMPLE))]
    sent = [base64.b64encode(file).decode() for file in files]
    found = reader.evaluate(CHECK, [sent, base64.b64encode(keys).decode()])
    said = [verify.verify(file, keys) for file in files]
    assert [is_right for is_right, _ in found] == [is_right for is_right, _ in said]
    assert found[0] == [*said[0]]
    changed = [(one[1], other[1]) for one, other in zip(found, said, strict=True)]
    named = [pair for pair in changed if pair[1].startswith("changed: ")]
    assert named
    assert {one for one, other in named if one != other} == set()


def test_verifiers_agree_on_proofs(reader, folder):
    data, other = (folder / "evidence.json").read_bytes(), "ab" * 32
    leaf = hashlib.sha256(b"\0" + hashlib.sha256(data).digest()).digest()
    root = hashlib.sha256(b"\1" + bytes.fromhex(other) + leaf).hexdigest()
    right = {"day": "2026-11-28", "root": root, "path": [["left", other]]}
    keys = (folder / "windowpane-keys.json").read_bytes()
    choose_files(reader, folder)
    status = reader.get_by_role("status")
    # A right one between two wrong ones, which have the same answer.
    paths = [["right", other]], right["path"], []
    for number, path in enumerate(paths):
        proof = json.dumps(right | {"path": path}).encode()
        saved = folder / f"proof-{number}.json"
        saved.write_bytes(proof)
        reader.get_by_label("Proof of its day").set_input_files(saved)
        is_right, text = verify.verify(data, keys, proof)
        assert is_right == (number == 1)
        expect(status).to_contain_text(text)


def test_archive_has_all_that_a_reader_needs(folder):
    names = ["evidence.json", "verify.html", "verify.py", "windowpane-keys.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert json.loads((folder / "windowpane-keys.json").read_bytes())["keys"]
    assert io.BytesIO((folder / "verify.py").read_bytes()).readline().startswith(b'"""')


@pytest.fixture
def link(owner):
    """The address of a link with evidence, from the dialog of the second reply."""
    page = owner.page
    open_menu(owner, 4, "Share up to here…")
    page.get_by_label("Evidence").select_option("whole")
    page.get_by_role("button", name="Create link").click()
    expect(page.locator("#dialog .made")).to_contain_text("with evidence")
    address = page.locator("#dialog .share-links .made pre").inner_text()
    page.keyboard.press("Escape")
    return address


@pytest.fixture
def stranger(take_context, site, errors):
    page = open_tab(take_context(**WIDE), site)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return page


def open_replay(stranger, link):
    stranger.goto(link)
    expect(stranger.locator("#replayed .message")).to_have_count(4)
    expect(stranger.locator("#context")).to_contain_text("As sent for reply #4")


def test_stranger_verifies_a_reply_in_the_browser(link, stranger):
    open_replay(stranger, link)
    asked = []
    stranger.on("request", lambda each: asked.append((each.resource_type, each.url)))
    stranger.get_by_role("button", name="Verify").click()
    said = stranger.locator("#verification")
    expect(said).to_contain_text("In order: signed by http")
    expect(said).to_contain_text("3 of 3 messages accounted for: 3 sent.")
    names = [url.rpartition("/")[2] for kind, url in asked if kind != "font"]
    assert names == ["windowpane-verify.js", "evidence.json?reply=4"]
    stranger.locator("#moment").press("Home")
    expect(stranger.locator("#context")).to_contain_text("As sent for reply #2")
    stranger.get_by_role("button", name="Verify").click()
    expect(said).to_contain_text("1 of 1 messages accounted for: 1 sent.")
    is_clean(stranger)


def test_answer_is_chinese_on_a_chinese_page(link, stranger, site):
    cookie = {"name": "django_language", "value": "zh-hans", "url": site.url}
    stranger.context.add_cookies([cookie])
    stranger.goto(link)
    stranger.get_by_role("button", name="验证").click()
    said = stranger.locator("#verification")
    expect(said).to_contain_text("3 条消息中 3 条去向明确：3 条已发送。")
    words = said.inner_text().replace(site.url, "").replace("UTC", "")
    assert re.findall("[A-Za-z]+", words) == []


@pytest.mark.parametrize("late", ["moment/", "evidence.json"])
def test_answer_stays_when_the_replay_starts_late(link, stranger, late):
    held = []
    stranger.route(re.compile(re.escape(late)), lambda route: held.append(route))
    stranger.goto(link)
    stranger.get_by_role("button", name="Verify").click()
    said = stranger.locator("#verification")
    if late == "moment/":
        expect(said).to_contain_text("In order: signed by http")
    else:
        expect(stranger.locator("#replayed .message")).to_have_count(4)
    while not held:  # the verifier is loaded before the file
        stranger.wait_for_timeout(50)
    for route in held:
        route.continue_()
    expect(stranger.locator("#replayed .message")).to_have_count(4)
    expect(said).to_contain_text("3 of 3 messages accounted for: 3 sent.")


def test_stranger_is_told_what_was_changed(link, stranger):
    def change(route):
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.body().replace(b"nuts", b"milk"))

    stranger.route("**/evidence.json*", change)
    open_replay(stranger, link)
    stranger.get_by_role("button", name="Verify").click()
    said = stranger.locator("#verification")
    expect(said).to_contain_text("Not in order: changed: dialog 3")
