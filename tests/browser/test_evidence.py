"""Evidence from the menu to a reader without the site: verify.html opened from a disk.

Both verifiers say the same, also of changed files.
"""

import base64
import io
import json
import zipfile

import pytest
from playwright.sync_api import expect

from chatsite.contrib.evidence import verify
from tests.chatsite.contrib.evidence.mutations import Mutations

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
    expect(status).to_contain_text("6 of 6 messages accounted for: 6 sent")
    rows = reader.locator("tbody tr")
    expect(rows).to_have_count(6)
    expect(rows.nth(2)).to_contain_text("I am allergic to nuts.")


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


def test_archive_has_all_that_a_reader_needs(folder):
    names = ["evidence.json", "verify.html", "verify.py", "windowpane-keys.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert json.loads((folder / "windowpane-keys.json").read_bytes())["keys"]
    assert io.BytesIO((folder / "verify.py").read_bytes()).readline().startswith(b'"""')
