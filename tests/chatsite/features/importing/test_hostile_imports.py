"""Files that were torn on their way, or made to hurt: each is refused with a reason or
taken whole, and what is taken can be exported and imported again.
"""

import io
import json
import struct
import zipfile
from datetime import timedelta

import pytest
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone

from chatsite.accounts import account
from chatsite.features.importing.exporting.as_markdown import write_markdown
from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.importing.files import reading
from chatsite.features.importing.files.reading import ImportFileError
from chatsite.turns import attempt, commands, lifecycle
from memory import library, transcript
from memory.models import Conversation, Prompt

from ...scenes import talk_in_turns
from .test_importing import CLAUDE, chatgpt, encode, take, violations

pytestmark = pytest.mark.django_db


def message(seq, role, **values):
    return {
        "seq": seq,
        "role": role,
        "text": f"Text {seq}",
        "state": "done",
        "created_at": "2026-01-01T00:00:00Z",
        **values,
    }


def own(*messages, **values):
    return {
        "format": 1,
        "conversation": {"uuid": "11111111-2222-4333-8444-555555555555"},
        "messages": [*messages] or [message(1, "user"), message(2, "assistant")],
        **values,
    }


def packed(data, name="conversations.json", method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


def goes_around(user, made):
    """Export the imported conversation, and check that its import is equal."""
    data = json.dumps(export_thread(made), cls=DjangoJSONEncoder)
    text = write_markdown(made)
    value = json.loads(data)
    library.erase_conversation(made)
    [again] = take(user, value).imported
    assert json.loads(json.dumps(export_thread(again), cls=DjangoJSONEncoder))
    assert write_markdown(again) == text
    assert violations() == []


def with_offset(data, mark, at, change):
    """The archive with one number of its directory changed."""
    start = data.rindex(mark) + at
    (value,) = struct.unpack("<I", data[start : start + 4])
    number = struct.pack("<I", change(value) % 2**32)
    return data[:start] + number + data[start + 4 :]


WHOLE = packed(json.dumps([CLAUDE]))
ARCHIVES = {
    "torn in the middle": WHOLE[: len(WHOLE) // 2],
    "without its end": WHOLE[:-5],
    "without its beginning": b"PK\x03\x04" + WHOLE[30:],
    "negative seek": with_offset(WHOLE, b"PK\x01\x02", 42, lambda at: at + 2**31),
    "directory elsewhere": with_offset(WHOLE, b"PK\x05\x06", 16, lambda at: at + 99),
    "wrong checksum": with_offset(WHOLE, b"PK\x01\x02", 16, lambda n: n ^ 1),
    "unknown method": WHOLE.replace(
        struct.pack("<HHH", 20, 0, 8), struct.pack("<HHH", 20, 0, 97)
    ),
    "encrypted": WHOLE.replace(
        struct.pack("<HHH", 20, 0, 8), struct.pack("<HHH", 20, 1, 8)
    ),
    "nothing behind the mark": b"PK\x03\x04",
    "another name": packed("[]", "chat.html"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_broken_archive_is_refused(alice, name):
    with pytest.raises(ImportFileError, match="archive"):
        take(alice, ARCHIVES[name])


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"format": 1, "conver', "valid JSON"),
        (json.dumps([CLAUDE]).encode()[:-40], "valid JSON"),
        (WHOLE[2:], "not"),
        (packed(json.dumps([CLAUDE]).encode()[:-40]), "valid JSON"),
        (packed(b"\xff\xd8 a picture"), "UTF-8"),
        (packed(b"[" * 100_000), "nested too deeply"),
        (b"[" + b"[[]]," * 1_100_000 + b"0]", "more values"),
        (b'{"a": 1e5000' + b"0" * 5_000 + b"}", "export"),
    ],
)
def test_a_torn_or_renamed_file_is_refused(alice, data, told, settings):
    with pytest.raises(ImportFileError, match=told):
        take(alice, data)


def test_values_are_counted_outside_of_texts(alice, monkeypatch):
    monkeypatch.setattr(reading, "MAX_VALUES", 100)
    talk = [{"sender": "human", "text": '[{"a\\": ,,[[' * 500}]
    assert take(alice, [{**CLAUDE, "chat_messages": talk}]).imported
    with pytest.raises(ImportFileError, match="more values"):
        take(alice, [{**CLAUDE, "chat_messages": [{}] * 101}])


@pytest.mark.parametrize("depth", [61, 500, 960, 5_000])
@pytest.mark.parametrize("form", [b"[%s]", b'[{"mapping": %s}]', b'{"format": %s}'])
def test_deep_files_are_refused(alice, depth, form):
    data = form % (b'{"a":' * depth + b"1" + b"}" * depth)
    with pytest.raises(ImportFileError, match="nested too deeply"):
        take(alice, data)


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def test_stored_values_have_bounds_of_their_own(alice):
    def calling(args):
        call = {"name": "search", "args": args, "id": "c"}
        return own(
            message(1, "user"),
            message(2, "assistant", tool_calls=[call], superseded=True),
            message(3, "assistant"),
        )

    [why] = take(alice, calling(nested(51))).notices
    assert "entry 2 of its messages can't be read: it is nested too deeply" in why
    [made] = take(alice, calling(nested(50))).imported
    goes_around(alice, made)


EARLY, LATE = "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"


class TestDates:
    @pytest.mark.parametrize("at", [EARLY, LATE, "1969-12-31T23:59:59Z", -1, 1e15])
    @pytest.mark.parametrize("name", ["created_at", "pinned_at", "deleted_at"])
    def test_impossible_ones_are_refused(self, alice, at, name):
        item = own(message(1, "user", **{name: at}), message(2, "assistant"))
        [why] = take(alice, item).notices
        assert "entry 1 of its messages" in why

    @pytest.mark.parametrize("at", [EARLY, LATE, "soon", -1e20, 1e300, True, [1]])
    def test_foreign_ones_are_ignored(self, alice, at):
        talk = [{"sender": "human", "text": "Hi", "created_at": at}]
        [made] = take(alice, [{**CLAUDE, "chat_messages": talk}]).imported
        assert timezone.now() - made.messages.get().created_at < timedelta(hours=1)
        goes_around(alice, made)

    @pytest.mark.parametrize("at", ["2199-01-01T00:00:00Z", "2199-12-31T23:00-00:59"])
    def test_dates_are_never_later_than_the_import(self, alice, at):
        """The audit recognises rows written here by their dates; all of their parts
        must exist.
        """
        rows = [
            message(seq, role, created_at=at)
            for seq, role in enumerate(("user", "assistant") * 2, 1)
        ]
        rows[2]["seq"], rows[3]["seq"] = 9, 10
        summary = {
            "version": 7,
            "first_seq": 1,
            "last_seq": 2,
            "text": "Short",
            "trigger": {"kind": "messages"},
            "status": "active",
            "author": "me",
            "created_at": at,
        }
        [made] = take(alice, own(*rows, summaries=[summary])).imported
        assert violations() == []
        assert made.messages.filter(created_at__gte=made.created_at).count() == 0
        made.refresh_from_db()
        assert made.updated_at < made.created_at
        talk_in_turns(made, "And now")
        assert violations() == []
        goes_around(alice, made)


def call(purpose, refs, **values):
    return {
        "purpose": purpose,
        "refs": refs,
        "sha256": "0" * 64,
        "model": "m",
        "tokens_estimated": 1,
        **values,
    }


REFS = {
    "system": "0" * 64,
    "fence": "0" * 64,
    "summaries": [],
    "pinned": [],
    "window": [[1, 1]],
    "recalled": [],
    "newest": 1,
}


class TestReferences:
    @pytest.mark.parametrize(
        "refs",
        [
            {"system": ["x"]},
            {**REFS, "system": ["x"]},
            {**REFS, "window": [["1", "2"]]},
            {**REFS, "window": [1, 2]},
            {**REFS, "newest": True},
            {**REFS, "recalled": [2**31]},
            {**REFS, "excerpts": [[1, 2]]},
            {**REFS, "more": nested(30)},
            {**REFS, "more": "x" * 200_000},
        ],
    )
    @pytest.mark.parametrize("purpose", ["reply", "summary"])
    def test_other_shapes_are_not_kept(self, alice, refs, purpose):
        summary = {
            "version": 1,
            "first_seq": 1,
            "last_seq": 2,
            "text": "Short",
            "trigger": {"kind": "messages"},
            "status": "active",
        }
        made_here = {"message__seq": 2, "summary__version": 1}
        item = own(summaries=[summary], model_calls=[call(purpose, refs, **made_here)])
        [made] = take(alice, item).imported
        assert not made.model_calls.filter(purpose="reply").exists()
        kept = [row.refs for row in made.model_calls.all()]
        assert all(isinstance(each["system"], str) for each in kept)
        goes_around(alice, made)

    def test_an_export_bears_what_older_imports_took(self, alice):
        [made] = take(alice, own()).imported
        made.model_calls.create(
            purpose="summary", refs={"system": ["x"]}, model="m", tokens_estimated=1
        )
        assert export_thread(made)["prompts"] == {}


class TestPrompts:
    SECRET = "You are Anna Berg's lawyer. Case 4711."

    @pytest.fixture
    def exported(self, bob):
        """Return an export with a text that none of its requests was sent with."""
        made = transcript.create_conversation(bob, system_prompt=self.SECRET)
        sent = commands.submit_message(made, text="Hello", client_id="a")
        claim = lifecycle.claim(made.pk)
        prepared = attempt.prepare_attempt(claim)
        begun = lifecycle.begin(claim, prepared.built, prepared.model)
        lifecycle.finish(begun, lifecycle.TurnResult("failed", "", error="timeout"))
        Conversation.objects.filter(pk=made.pk).update(system_prompt="")
        made.refresh_from_db()
        value = json.loads(json.dumps(export_thread(made), cls=DjangoJSONEncoder))
        assert self.SECRET in value["prompts"].values()
        del value["model_calls"]
        assert sent.message.seq == 1
        account.delete_account(bob)
        assert not Prompt.objects.filter(text=self.SECRET).exists()
        return value

    def test_prompt_of_no_request_is_not_stored(self, alice, exported):
        assert take(alice, exported).imported
        assert not Prompt.objects.filter(text=self.SECRET).exists()

    def test_prompt_of_a_dropped_request_is_deleted_with_it(self, alice, bob):
        made = transcript.create_conversation(bob, system_prompt=self.SECRET)
        talk_in_turns(made, "Hello")
        value = json.loads(json.dumps(export_thread(made), cls=DjangoJSONEncoder))
        library.erase_conversation(made)
        value["messages"][0]["text"] = "Forged"
        assert take(alice, value).imported
        assert not Prompt.objects.filter(text=self.SECRET).exists()

    def test_needed_prompt_is_deleted_with_its_user(self, alice, bob):
        made = transcript.create_conversation(bob, system_prompt=self.SECRET)
        talk_in_turns(made, "Hello")
        value = json.loads(json.dumps(export_thread(made), cls=DjangoJSONEncoder))
        library.erase_conversation(made)
        take(alice, value)
        assert Prompt.objects.filter(text=self.SECRET).exists()
        account.delete_account(alice)
        assert not Prompt.objects.exists()


def test_numbers_leave_room_for_what_comes(alice):
    [why] = take(alice, own(message(2**31 - 2, "user"))).notices
    assert "entry 1 of its messages" in why
    [made] = take(alice, own(message(1_000_000, "user"))).imported
    talk_in_turns(made, "Next")
    assert violations() == []


def test_a_title_and_a_key_of_any_kind_do_no_harm(alice):
    for values in ({"title": ["x"]}, {"conversation_id": 10**400}, {"id": {}}):
        take(alice, encode([chatgpt(**values)]))
    assert violations() == []
