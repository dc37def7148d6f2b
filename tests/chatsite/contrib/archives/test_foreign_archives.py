"""The archives of other chats, as their users get them: nothing that was said in one is
lost without a word.
"""

import json
import re
from time import process_time

import pytest

from chatsite import plugins
from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.importing.files import reading
from chatsite.features.importing.files.reading import ImportItemError
from chatsite.features.importing.files.remainder import BRANCH, HIDDEN, Remainder
from chatsite.features.importing.storing import _read_item

from ...features.importing.test_importing import as_json, post, take
from ...scenes import page_of, signed_in, violations
from .archives import make_archive

pytestmark = pytest.mark.django_db
WORD = re.compile(r"w\d+x\d+y")


def read(item):
    """The draft, and every word that it has."""
    draft = _read_item(json.loads(json.dumps(item)), None)
    names = [each.name for some in draft.pictures.values() for each in some]
    whole = json.dumps([draft.bundle.messages, names], default=str)
    return draft, {*WORD.findall(whole)}


@pytest.mark.parametrize("seeds", [range(n, n + 30) for n in range(0, 300, 30)])
def test_string_of_an_archive_is_kept_or_counted(seeds):
    for seed in seeds:
        archive, item = make_archive(seed)
        draft, words = read(item)
        assert [word for word in archive.open if word not in words] == [], seed
        assert words.isdisjoint(archive.hidden + archive.others)
        assert draft.left.get(BRANCH, 0) == len(archive.others)
        hidden = ("user_editable_context", "model_editable_context", HIDDEN)
        assert sum(draft.left.get(each, 0) for each in hidden) == len(archive.hidden)


@pytest.mark.parametrize("seed", range(0, 300, 25))
def test_archive_is_imported_and_exported_again(alice, bob, seed):
    archive, item = make_archive(seed)
    outcome = take(alice, [item])
    [made] = outcome.imported
    assert outcome.left.kinds == read(item)[0].left
    assert violations() == []
    written = as_json(export_thread(made))
    assert set(WORD.findall(json.dumps(written))) == set(archive.open)
    [again] = take(bob, written).imported
    for row, now in zip(
        written["messages"], as_json(export_thread(again))["messages"], strict=True
    ):
        for name in ("seq", "role", "text", "reasoning", "tool_calls"):
            assert now[name] == row[name]


def test_page_says_what_was_not_understood(alice):
    archive, item = make_archive(0)
    while not archive.others or "future_part" not in json.dumps(item):
        archive, item = make_archive(archive.seed + 3)
    page = post(signed_in(alice), [item])
    assert "Not understood" in page
    assert f"texts of other branches: {len(archive.others)}" in page
    assert "future_part" not in page or "future_part: " in page


def tell(*messages):
    """Return a ChatGPT conversation of these messages: role, content, other fields."""
    mapping, parent = {}, None
    for number, (role, content, more) in enumerate(messages):
        said = {"author": {"role": role}, "content": content, **more}
        node = {"message": said, "parent": parent, "children": []}
        mapping[f"n{number}"], parent = node, f"n{number}"
    item = {"conversation_id": "one", "current_node": parent, "mapping": mapping}
    return _read_item(item, None).bundle.messages


def write(*parts):
    return {"content_type": "text", "parts": [*parts]}


class TestChatGPT:
    def test_message_of_a_file_alone_keeps_its_neighbours_apart(self):
        files = {"metadata": {"attachments": [{"id": "f", "name": "plan.pdf"}]}}
        rows = tell(
            ("user", write("Hi"), {}),
            ("assistant", write("Hello"), {}),
            ("user", write(""), files),
            ("assistant", write("A plan."), {}),
        )
        assert [row["text"] for row in rows] == [
            *("Hi", "Hello", "[file: plan.pdf, not in the export]", "A plan."),
        ]

    def test_sound_without_words_leaves_a_mark(self):
        sound = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://f"}
        content = {"content_type": "multimodal_text", "parts": [sound]}
        [row] = tell(("user", content, {}))
        assert row["text"] == "[attachment not included in the export]"

    def test_code_for_people_is_a_block(self):
        code = {"content_type": "code", "language": "python", "text": "a = '```'"}
        _asked, row = tell(("user", write("Code"), {}), ("assistant", code, {}))
        assert row["text"] == "````python\na = '```'\n````"

    def test_thoughts_stand_before_their_reply(self):
        thought = {"summary": "Adding", "content": "1 + 1", "chunks": ["1 ", "+ 1"]}
        rows = tell(
            ("user", write("Sum?"), {}),
            ("assistant", {"content_type": "thoughts", "thoughts": [thought]}, {}),
            ("assistant", {"content_type": "reasoning_recap", "content": "4 s"}, {}),
            ("assistant", write("2"), {}),
        )
        assert (rows[1]["text"], rows[1]["reasoning"]) == ("2", "Adding\n1 + 1\n\n4 s")

    def test_sources_follow_the_text_that_has_no_link_to_them(self):
        shown = {"url": "https://a.test/?utm_source=chatgpt.com", "title": "A"}
        other = {"url": "https://b.test/", "title": "B [2]"}
        cited = {"content_references": [{"items": [shown, other, other]}]}
        text = "See [A](https://a.test/)."
        said = ("assistant", write(text), {"metadata": cited})
        _asked, row = tell(("user", write("Who?"), {}), said)
        assert row["text"] == f"{text}\n\nSources:\n\n- [B (2)](<https://b.test/>)"

    def test_file_that_a_reply_cites_is_named(self):
        mark = "\ue200filecite\ue202turn0file0\ue201"
        cited = [{"matched_text": mark, "type": "file", "name": "plan.pdf"}]
        said = write(f"On Monday.{mark}"), {"metadata": {"content_references": cited}}
        _asked, row = tell(("user", write("When?"), {}), ("assistant", *said))
        assert row["text"] == "On Monday.\n\nSources:\n\n- plan.pdf"

    def test_many_parts_of_one_reply_cost_as_much_as_their_text(self):
        parts = [("assistant", write("ab"), {})] * 20_000
        _asked, row = tell(("user", write("Go"), {}), *parts)
        assert len(row["text"]) == 20_000 * 4 - 2


class TestClaude:
    def tell(self, *messages, **item):
        made = {"uuid": "one", "chat_messages": [*messages], **item}
        return _read_item(made, None)

    def say(self, own, parent, *blocks, sender="assistant"):
        said = {"uuid": own, "parent_message_uuid": parent, "sender": sender}
        return {**said, "content": [*blocks]}

    def test_open_branch_is_the_one_that_the_file_names(self):
        one, two = ({"type": "text", "text": text} for text in ("One", "Two"))
        ask = self.say("q", "root", one, sender="human")
        replies = [self.say("a", "q", one), self.say("b", "q", two)]
        draft = self.tell(ask, *replies, current_leaf_message_uuid="a")
        assert [row["text"] for row in draft.bundle.messages] == ["One", "One"]
        assert draft.left == {BRANCH: 1}
        draft = self.tell(ask, *replies)
        assert [row["text"] for row in draft.bundle.messages] == ["One", "Two"]

    def test_round_of_parents_ends(self):
        block = {"type": "text", "text": "One"}
        draft = self.tell(self.say("a", "b", block), self.say("b", "a", block))
        assert draft.bundle.messages

    def test_result_of_no_call_is_on_a_card(self):
        result = {"type": "tool_result", "name": "web", "content": "Found"}
        draft = self.tell(self.say("a", None, result))
        rows = draft.bundle.messages
        assert rows[1]["tool_calls"][0]["name"] == "web"
        assert rows[2]["text"] == "Found"

    def test_many_calls_of_one_reply_cost_as_much_as_the_file(self):
        calls = [
            {"type": "tool_use", "id": f"t{n}", "input": {}} for n in range(90_000)
        ]
        started = process_time()
        with pytest.raises(ImportItemError, match="characters; the limit is"):
            self.tell(self.say("a", None, *calls))
        assert process_time() - started < 5

    def test_page_has_the_title_of_its_citation(self):
        details = {"type": "web_search_citation", "url": "https://a.test/"}
        cited = [{"uuid": "1", "title": "A page", "details": details}]
        block = {"type": "text", "text": "So.", "citations": cited}
        rows = self.tell(self.say("a", None, block)).bundle.messages
        assert rows[1]["text"] == "So.\n\nSources:\n\n- [A page](<https://a.test/>)"

    def test_sealed_thoughts_are_counted(self):
        block = {"type": "redacted_thinking", "data": "xyz"}
        draft = self.tell(self.say("a", None, block, {"type": "text", "text": "Hi"}))
        assert draft.left == {"redacted_thinking": 1}


def test_reply_of_thoughts_alone_is_shown(alice):
    fragments = [{"type": "THINK", "content": "Soft or hard?"}]
    nodes = {
        "1": {"parent": None, "children": ["2"]},
        "2": {"parent": "1", "message": {"fragments": fragments}},
    }
    nodes["1"]["message"] = {"fragments": [{"type": "REQUEST", "content": "Egg?"}]}
    item = {"id": "d", "inserted_at": "2026-05-01T10:00:00+08:00", "mapping": nodes}
    [made] = take(alice, [item]).imported
    assert violations() == []
    assert "Soft or hard?" in page_of(signed_in(alice), made)


def test_kinds_have_a_bound():
    rest = Remainder()
    for number in range(1_000):
        rest.count_kind(f"kind {number} {'x' * 100}")
    rest.count_kind(["no name"])
    assert sum(rest.kinds.values()) == 1_001
    assert len(rest.kinds) <= 51
    assert max(map(len, rest.kinds)) == 40


def test_an_archive_of_another_chat_is_refused_by_name_without_its_app(monkeypatch):
    monkeypatch.delitem(plugins.sources[reading.ArchiveReader], "claude")
    with pytest.raises(ImportItemError, match="it comes from Claude, and this"):
        _read_item({"chat_messages": []}, None)
