"""The archives that ChatGPT and Claude send to people: conversations with their images,
what is left out, and what is refused.
"""

import io
import json
import zipfile
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils import translation

from chatsite.accounts import account
from chatsite.features.attachments.images import audit
from chatsite.features.attachments.models import ImageFile
from chatsite.features.importing import storing
from chatsite.features.importing.exporting.as_markdown import write_markdown
from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.importing.files import archive, pictures, reading
from chatsite.features.importing.files.reading import ImportFileError
from chatsite.features.importing.outcome import KIND
from chatsite.features.sharing.services import create_share
from chatsite.jobs import queue
from chatsite.turns.copying import copies
from chatsite.turns.models import Job
from memory import actions, library
from memory.images import image_source
from memory.models import Message
from memory.view import rebuilding

from ...scenes import answer, page_of, signed_in, submit, url, violations
from ..attachments.images import pictures as drawn
from ..attachments.images.test_image_reading import SVG
from ..attachments.images.test_sending import built_now, images_in
from .test_hostile_imports import with_offset
from .test_importing import (
    CLAUDE,
    as_json,
    chatgpt,
    encode,
    node,
    post,
    said,
    take,
)

pytestmark = pytest.mark.django_db

UPLOAD, MADE, NEW = "file-Ab12Cd34", "file-Ge56Hi78", "file_0000aa11bb22"
OTHERS = {"chat.html": "<html>", "user.json": "{}", "message_feedback.json": "[]"}


def pack(files, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        for name, data in files.items():
            made.writestr(name, data if isinstance(data, bytes | str) else encode(data))
    return buffer.getvalue()


def image(file, scheme="file-service"):
    return {
        "content_type": "image_asset_pointer",
        "asset_pointer": f"{scheme}://{file}",
        "width": 40,
        "height": 30,
    }


def shown(*parts):
    return {"content_type": "multimodal_text", "parts": [*parts]}


def talk(*nodes, **values):
    """A conversation of these nodes, one after the other."""
    mapping = {each["id"]: each for each in nodes}
    return chatgpt(mapping=mapping, current_node=nodes[-1]["id"], **values)


def asked(*files, name="cat.png", text="What is this?", **values):
    """A message with images, and a reply."""
    parts = [image(file) for file in files]
    named = [{"id": file, "name": name, "mime_type": "image/png"} for file in files]
    question = node("q", "user", "", None, content=shown(*parts, text))
    question["message"]["metadata"] = {"attachments": named}
    return talk(question, node("a", "assistant", "A cat.", "q"), **values)


def painted(*files, last="", **values):
    """A reply of which a tool has made images."""
    call = node("c", "assistant", '{"prompt": "a cat"}', "q", recipient="dalle.text2im")
    parts = [image(file, "sediment") for file in files]
    result = node("t", "tool", "", "c", content=shown(*parts))
    result["message"]["author"]["name"] = "dalle.text2im"
    nodes = [node("q", "user", "Paint a cat", None), call, result]
    if last:
        nodes.append(node("a", "assistant", last, "t"))
    return talk(*nodes, **values)


def files_of(message):
    return [(each["name"], each["image"]["width"]) for each in message.attachments]


def refusal(user, data):
    with pytest.raises(ImportFileError) as error:
        take(user, data)
    assert not Message.objects.filter(conversation__owner=user).exists()
    assert not ImageFile.objects.exists()
    return str(error.value)


class TestImages:
    @pytest.fixture
    def made(self, alice):
        files = {"conversations.json": [asked(UPLOAD)], **OTHERS}
        data = pack({**files, f"{UPLOAD}-cat.png": drawn.with_words("Geneva")})
        [made] = take(alice, data).imported
        return made

    def test_images_belong_to_their_message(self, client, made):
        question = made.messages.get(seq=1)
        assert question.typed == "What is this?"
        [file] = question.attachments
        [row] = made.image_files.all()
        assert (file["name"], row.message) == ("cat.png", question)
        assert "messages/1/images/0/" in page_of(client, made)
        assert violations() == []
        assert list(audit.find_false_images()) == []

    def test_pixels_alone_are_imported(self, made):
        [row] = made.image_files.all()
        for data in (row.data, row.small):
            assert b"Geneva" not in bytes(data)
            assert drawn.open_image(data).size == (30, 40)

    def test_images_survive_an_own_export(self, alice, bob, made):
        value = as_json(export_thread(made))
        [again] = take(bob, value).imported
        assert as_json(export_thread(again))["images"] == value["images"]
        assert "cat.png" in write_markdown(made)

    def test_images_are_erased_with_their_message(self, made):
        actions.delete_message(made, 1)
        assert not ImageFile.objects.exists()

    def test_images_are_erased_with_their_conversation(self, made):
        library.erase_conversation(made)
        assert not ImageFile.objects.exists()

    def test_a_model_that_takes_images_is_sent_them(self, made):
        assert images_in(built_now(made).wire) == [bytes(made.image_files.get().data)]

    def test_the_same_archive_makes_no_second_copy(self, alice, made, monkeypatch):
        def read(*args):
            raise AssertionError("an image was read again")

        monkeypatch.setattr(pictures.Pictures, "_read", read)
        data = pack({"conversations.json": [asked(UPLOAD)], f"{UPLOAD}.png": b"x"})
        outcome = take(alice, data)
        assert (outcome.known, outcome.imported) == ([made], [])
        assert ImageFile.objects.count() == 1

    def test_image_named_only_beside_the_text_is_imported(self, alice):
        item = asked(UPLOAD)
        item["mapping"]["q"]["message"]["content"] = shown("Look")
        png = drawn.make()
        data = pack({"conversations.json": [item], f"{UPLOAD}-cat.png": png})
        [made] = take(alice, data).imported
        assert files_of(made.messages.get(seq=1)) == [("cat.png", 40)]

    def test_a_message_of_images_alone_is_one(self, alice):
        data = pack({"conversations.json": [asked(UPLOAD, text=" ")]})
        [made] = take(alice, data).imported
        assert said(made)[0] == ("user", "[image: cat.png, not imported]")


class TestMade:
    @pytest.mark.parametrize("last", ["", "Here it is."])
    def test_images_of_a_tool_are_those_of_the_reply(self, client, alice, last):
        name = f"dalle-generations/{MADE}-0a1b2c3d.webp"
        item = painted(MADE, last=last)
        data = pack({"conversations.json": [item], name: drawn.make("WEBP")})
        outcome = take(alice, data)
        [made] = outcome.imported
        call, result, reply = made.messages.order_by("seq")[1:]
        assert call.tool_calls[0]["name"] == "dalle.text2im"
        assert (result.text, result.attachments) == ("[images: see the reply]", [])
        assert (reply.role, reply.typed) == ("assistant", last)
        assert files_of(reply) == [("0a1b2c3d.webp", 40)]
        assert outcome.images == 1
        assert "messages/4/images/0/" in page_of(client, made)
        assert violations() == []

    @pytest.mark.parametrize("words", ["", "done"])
    def test_plots_of_a_program_are_too(self, alice, words):
        """The plots are named beside the output, and in no part of it."""
        drawn_there = {"message_type": "image", "image_url": f"sediment://{NEW}"}
        odd = [7, {"message_type": "image"}, {"image_url": 7}, {"message_type": "text"}]
        output = {"content_type": "execution_output", "text": words}
        result = node("t", "tool", "", "c", content=output)
        result["message"]["metadata"] = {
            "aggregate_result": {"messages": [*odd, drawn_there, drawn_there]}
        }
        item = talk(
            node("q", "user", "Plot it", None),
            node("c", "assistant", "plt.show()", "q", recipient="python"),
            result,
            node("a", "assistant", "This is it.", "t"),
        )
        data = pack({"conversations.json": [item], f"{NEW}.dat": drawn.make()})
        [made] = take(alice, data).imported
        _question, _call, result, reply = made.messages.order_by("seq")
        told = "\n\n".join(filter(None, [words, "[images: see the reply]"]))
        assert (result.text, result.attachments) == (told, [])
        assert files_of(reply) == [(f"{NEW}.png", 40)]

    @pytest.mark.parametrize("value", [7, [], {"messages": 7}, {"messages": {}}])
    def test_a_program_without_plots(self, alice, value):
        item = painted(MADE)
        item["mapping"]["t"]["message"]["metadata"] = {"aggregate_result": value}
        assert take(alice, pack({"conversations.json": [item]})).imported

    def test_made_images_survive_an_own_export(self, alice, bob):
        data = pack(
            {"conversations.json": [painted(MADE)], f"{MADE}.png": drawn.make()}
        )
        [made] = take(alice, data).imported
        value = as_json(export_thread(made))
        [again] = take(bob, value).imported
        assert again.image_files.get().message.role == "assistant"
        assert as_json(export_thread(again))["images"] == value["images"]

    def test_a_reply_is_sent_with_their_names_alone(self, alice):
        """Providers take images of people, and none in a reply."""
        data = pack(
            {"conversations.json": [painted(MADE)], f"{MADE}.png": drawn.make()}
        )
        [made] = take(alice, data).imported
        wire = built_now(made).wire
        assert images_in(wire) == []
        [reply] = [each for each in wire if "[image: " in str(each["content"])]
        assert reply["role"] == "assistant"

    def test_file_cannot_claim_that_an_image_was_sent(self, alice):
        """The request would have the words of the reply as those of a user."""
        data = pack(
            {"conversations.json": [painted(MADE)], f"{MADE}.png": drawn.make()}
        )
        [made] = take(alice, data).imported
        reply = made.messages.get(seq=4).to_langchain()
        image_source.note_again(made, [reply], [[4, 0, 85]])
        assert image_source.images_of([reply]) == []


class TestContinued:
    """An imported conversation with images of the user and of a reply, continued."""

    @pytest.fixture
    def made(self, alice):
        item = painted(MADE, last="Here it is.")
        item["mapping"]["q"]["message"]["content"] = shown(image(UPLOAD), "Like this")
        files = {f"{UPLOAD}.png": drawn.make(), f"{MADE}.png": drawn.make("WEBP")}
        data = pack({"conversations.json": [item], **files})
        [made] = take(alice, data).imported
        submit(made, "Paint it again")
        answer(made, "No.")
        return made

    def test_a_request_is_what_its_hash_says(self, made):
        call = made.model_calls.get(purpose="reply")
        assert call.refs["images"] == [[1, 0, 85]]
        assert rebuilding.verify_context(call)
        wire = rebuilding.rebuild_context(call).wire
        assert images_in(wire) == [bytes(made.image_files.get(message__seq=1).data)]
        assert violations() == []

    def test_the_right_pane_has_it(self, client, made):
        pane = client.get(f"{url('context', made)}?reply=6").content.decode()
        assert pane.count("sent-image") == 2
        assert "messages/1/images/0/" in pane
        assert f"<bdi>{MADE}.png</bdi> only its name is sent" in pane

    def test_a_branch_has_both(self, made):
        copy = copies.branch_conversation(made, 6)
        assert [row.message.seq for row in copy.image_files.order_by("pk")] == [1, 4]
        assert violations() == []

    def test_a_link_shows_both_or_none(self, made):
        share = create_share(made, with_images=True)
        address = reverse("shared-page", args=[share.token])
        page = Client().get(address).content.decode()
        for seq in (1, 4):
            place = reverse("shared-image", args=(share.token, seq, 0))
            assert f'src="images/{seq}/0/"' in page
            assert Client().get(place)["Content-Type"] == "image/png"
        bare = create_share(made)
        place = reverse("shared-image", args=(bare.token, 4, 0))
        assert Client().get(place).status_code == 404

    def test_images_are_404_for_other_users(self, made, bob):
        place = reverse("attachment-image", args=(made.uuid, 4, 0))
        assert signed_in(made.owner).get(place).status_code == 200
        assert signed_in(bob).get(place).status_code == 404

    def test_images_are_deleted_with_their_message_and_user(self, made):
        actions.delete_message(made, 4)
        assert [row.message.seq for row in made.image_files.all()] == [1]
        account.delete_account(made.owner)
        assert not ImageFile.objects.exists()


class TestKilled:
    """An import that is killed in the middle: some images are stored, and no message is
    shown.
    """

    @pytest.fixture
    def job(self, alice, monkeypatch):
        def die(*args, **values):
            raise SystemExit

        monkeypatch.setattr(storing.copies, "write_turns", die)
        files = {"conversations.json": [asked(UPLOAD)], f"{UPLOAD}.png": drawn.make()}
        with pytest.raises(SystemExit):
            take(alice, pack(files))
        monkeypatch.undo()
        return queue.latest(KIND, alice)

    def test_killed_import_shows_nothing(self, alice, job):
        [row] = ImageFile.objects.all()
        place = reverse("attachment-image", args=(row.conversation.uuid, 1, 0))
        assert signed_in(alice).get(place).status_code == 404
        assert not library.list_own(alice).exists()
        assert violations() == []

    def test_the_purge_takes_all(self, alice, job):
        past = Now() - timedelta(seconds=1)
        Job.objects.filter(pk=job.pk).update(lease_until=past)
        queue.end_dead()
        assert library.purge_deleted() == 1
        assert not ImageFile.objects.exists()
        data = pack({"conversations.json": [asked(UPLOAD)], f"{UPLOAD}.png": b"x"})
        assert len(take(alice, data).imported) == 1


class TestNames:
    def test_newer_archives_have_parts_and_a_list_of_names(self, alice):
        first, second = asked(UPLOAD, name=""), painted(NEW)
        second["conversation_id"] = "abc-2"
        names = {f"{UPLOAD}.dat": "Holiday.JPG", f"{NEW}.dat": "x/made.png"}
        outcome = take(
            alice,
            pack(
                {
                    "export/conversations-000.json": [first],
                    "export/conversations-001.json": [second],
                    "export/conversation_asset_file_names.json": names,
                    "export/export_manifest.json": "{}",
                    f"export/{UPLOAD}.dat": drawn.make("JPEG"),
                    f"export/{NEW}.dat": drawn.make(),
                    "__MACOSX/export/._conversations-000.json": "junk",
                    ".DS_Store": "junk",
                }
            ),
        )
        one, two = outcome.imported
        assert files_of(one.messages.get(seq=1)) == [("Holiday.JPG", 40)]
        assert files_of(two.messages.get(seq=4)) == [("made.png", 40)]
        assert (outcome.images, outcome.others) == (2, 1)

    @pytest.mark.parametrize("names", [b"{broken", b"[1]", b"[" * 99_999, b'{"a": 1}'])
    def test_image_without_a_name_is_named_by_its_id(self, alice, names):
        item = asked(UPLOAD, name="")
        files = {"conversations.json": [item], f"{UPLOAD}.dat": drawn.make()}
        outcome = take(alice, pack({**files, archive.NAMES: names}))
        [made] = outcome.imported
        assert files_of(made.messages.get(seq=1)) == [(f"{UPLOAD}.png", 40)]
        assert outcome.others == 0

    def test_the_whole_file_goes_before_parts_and_copies(self, alice):
        other = {**CLAUDE, "uuid": "c-2", "name": "A copy"}
        files = {"old/conversations.json": [other], "conversations-000.json": [other]}
        outcome = take(alice, pack({**files, "conversations.json": [CLAUDE]}))
        assert [made.title for made in outcome.imported] == ["From Claude"]

    def test_parts_are_bounded_together(self, alice, monkeypatch, settings):
        files = {f"conversations-{n:03}.json": [CLAUDE] * 9 for n in range(9)}
        monkeypatch.setattr(reading, "MAX_VALUES", 1_000)
        assert "more values" in refusal(alice, pack(files))
        monkeypatch.undo()
        settings.IMPORT_MAX_MB = 1
        files = {f"conversations-{n}.json": b" " * 600_000 for n in range(2)}
        assert "more than 1 MB" in refusal(alice, pack(files))

    def test_claude_sends_no_images(self, alice):
        question = {
            **{"sender": "human", "text": "", "content": [], "attachments": []},
            "files": [
                {"file_uuid": "f-1", "file_name": "cat.png"},
                {"file_uuid": "f-2", "file_name": "notes.pdf"},
                {"file_uuid": "f-3", "file_name": None},
                7,
            ],
        }
        item = {**CLAUDE, "chat_messages": [question, CLAUDE["chat_messages"][1]]}
        files = {"conversations.json": [item], "projects.json": "[]"}
        outcome = take(alice, pack({**files, "users.json": "[]"}))
        [made] = outcome.imported
        words = said(made)[0][1].split("\n\n")
        assert words == [
            "[file: notes.pdf, not in the export]",
            "[attachment not included in the export]",
            "[image: cat.png, not imported]",
        ]
        assert outcome.others == 2


LOST = {
    "missing": (None, "missing in the file: 1."),
    "a drawing": (SVG, "can't be read: 1."),
    "a page": (b"<html><script>alert(1)</script>", "can't be read: 1."),
    "HEIC": (b"\0\0\0\x18ftypheic....", "can't be read: 1."),
    "a zip": (pack({"a": "b"}), "can't be read: 1."),
    "empty": (b"", "can't be read: 1."),
    "cut": (drawn.make()[:60], "can't be read: 1."),
    "a bomb": (drawn.bomb(50_000, 50_000), "more than 64 million pixels: 1."),
}


class TestLost:
    @pytest.mark.parametrize("name", LOST)
    def test_unreadable_image_does_not_stop_the_import(self, alice, name):
        data, why = LOST[name]
        files = {"conversations.json": [asked(UPLOAD, NEW)], f"{NEW}.png": drawn.make()}
        if data is not None:
            files[f"{UPLOAD}-cat.png"] = data
        outcome = take(alice, pack(files))
        [made], [told] = outcome.imported, outcome.notices
        assert told.endswith(why)
        question = made.messages.get(seq=1)
        assert question.typed == "What is this?\n\n[image: cat.png, not imported]"
        counts = len(question.attachments), made.image_files.count(), outcome.images
        assert counts == (1, 1, 1)
        assert violations() == []

    def test_data_behind_an_image_is_dropped(self, alice):
        hidden = b"<script>alert(1)</script>" + pack({"conversations.json": "[]"})
        files = {"conversations.json": [asked(UPLOAD)]}
        take(alice, pack({**files, f"{UPLOAD}.png": drawn.make() + hidden}))
        assert b"<script>" not in bytes(ImageFile.objects.get().data)

    def test_a_damaged_one_of_the_archive(self, alice):
        files = {"conversations.json": [asked(UPLOAD)], f"{UPLOAD}.png": drawn.make()}
        data = pack(files, zipfile.ZIP_STORED)
        torn = data.replace(b"IDAT", b"idat")
        assert "can't be read: 1." in take(alice, torn).notices[0]

    @pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_image_that_unpacks_without_a_bound_is_lost(self, alice, method):
        """430 bytes are 400 MB in these, whatever the directory says."""
        buffer = io.BytesIO(pack({"conversations.json": [asked(UPLOAD)]}))
        with zipfile.ZipFile(buffer, "a", method) as made:
            made.writestr(f"{UPLOAD}.png", drawn.make())
        outcome = take(alice, buffer.getvalue())
        assert (len(outcome.imported), outcome.images) == (1, 0)
        assert "can't be read: 1." in outcome.notices[0]

    def test_large_image_is_lost(self, alice, settings):
        settings.ATTACHMENT_MAX_MB = 1
        files = {"conversations.json": [asked(UPLOAD)]}
        [told] = take(alice, pack({**files, f"{UPLOAD}.png": bytes(1_100_000)})).notices
        assert "more than 1 MB: 1." in told

    def test_images_beyond_the_users_room_are_lost(self, alice, settings):
        """The images of one import are counted together."""
        size = 600_000
        settings.IMAGES_PER_PERSON_MB = 1
        noise = drawn.noise(800)
        item = asked(UPLOAD, NEW, MADE)
        files = {f"{name}.png": noise for name in (UPLOAD, NEW, MADE)}
        outcome = take(alice, pack({"conversations.json": [item], **files}))
        kept = [row.size for row in ImageFile.objects.all()]
        assert sum(kept) <= 1024 * 1024 < sum(kept) + size
        assert f"may have 1 MB: {3 - len(kept)}." in outcome.notices[0]

    def test_images_beyond_their_share_of_the_time_are_lost(self, alice, monkeypatch):
        monkeypatch.setattr(pictures, "SHARE_OF_TIME", -1)
        files = {"conversations.json": [asked(UPLOAD)], f"{UPLOAD}.png": drawn.make()}
        [told] = take(alice, pack(files)).notices
        assert "taken the import too long: 1." in told

    def test_images_beyond_the_limits_of_messages_are_lost(self, alice, monkeypatch):
        monkeypatch.setattr(pictures, "MOST_OF_MESSAGE", 2)
        files = {"conversations.json": [asked(UPLOAD, NEW, MADE)]}
        files |= {f"{name}.png": drawn.make() for name in (UPLOAD, NEW, MADE)}
        outcome = take(alice, pack(files))
        assert outcome.images == 2
        assert (
            "beyond 2 of a message or 300 of a conversation: 1." in outcome.notices[0]
        )

    def test_images_are_lost_without_the_archive(self, alice):
        outcome = take(alice, [asked(UPLOAD), painted(MADE)])
        assert outcome.notices[0].endswith("missing in the file: 1.")

    def test_a_name_does_no_harm(self, client, alice):
        item = asked(UPLOAD, name="../<script>alert(1)</script>\u202egnp.exe")
        files = {"conversations.json": [item], f"{UPLOAD}.png": drawn.make()}
        [made] = take(alice, pack(files)).imported
        assert "<script>alert" not in page_of(client, made)
        [(name, _width)] = files_of(made.messages.get(seq=1))
        assert "\u202e" not in name
        assert name.endswith(".png")


def with_entries(count):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("conversations.json", json.dumps([CLAUDE]))
        for number in range(count):
            made.writestr(f"{number}.txt", "")
    return buffer.getvalue()


WHOLE = pack({"conversations.json": [CLAUDE]})
BESIDE = {"conversations.json": [CLAUDE]}
HOSTILE = {
    "climbs": (pack({**BESIDE, "../../etc/passwd": "x"}), "leads out of its folder"),
    "climbs in Windows": (pack({**BESIDE, "..\\x.png": "x"}), "leads out of its"),
    "from the root": (pack({**BESIDE, "/etc/passwd": "x"}), "leads out of its folder"),
    "zip of zips": (pack({"a.zip": WHOLE, "b.zip": WHOLE}), "but other archives"),
    "encrypted": (
        with_offset(WHOLE, b"PK\x01\x02", 8, lambda flags: flags | 1),
        "is encrypted",
    ),
    "says that it is smaller": (
        with_offset(WHOLE, b"PK\x01\x02", 24, lambda size: size - 9),
        "damaged",
    ),
    "says that it is larger": (
        with_offset(WHOLE, b"PK\x01\x02", 24, lambda size: size + 9),
        "damaged",
    ),
    "packed by bzip2": (pack(BESIDE, zipfile.ZIP_BZIP2), "damaged, encrypted"),
    "packed by LZMA": (pack(BESIDE, zipfile.ZIP_LZMA), "damaged, encrypted"),
    "says that it is huge": (
        with_offset(WHOLE, b"PK\x01\x02", 24, lambda size: 2**32 - 2),
        "more than 50 MB",
    ),
}


class TestHostile:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_archive_is_refused_with_a_sentence(self, alice, name):
        data, told = HOSTILE[name]
        assert told in refusal(alice, data)

    def test_archive_of_too_many_files_is_refused(self, alice, monkeypatch):
        assert take(alice, with_entries(20)).others == 20
        monkeypatch.setattr(archive, "MAX_ENTRIES", 20)
        with pytest.raises(ImportFileError, match="has 21 files; the limit is 20"):
            take(alice, with_entries(20))

    def test_archive_that_unpacks_to_too_much_is_refused(self, alice, settings):
        settings.IMPORT_MAX_MB = 1
        zeros = {f"{n}.bin": bytes(1_100_000) for n in range(10)}
        assert "unpacks to more than 10 MB" in refusal(alice, pack({**BESIDE, **zeros}))

    def test_a_bomb_beside_the_conversations_is_never_unpacked(self, alice):
        data = pack({**BESIDE, "deep.zip": pack({"a": bytes(9_000_000)})})
        outcome = take(alice, data)
        assert (len(outcome.imported), outcome.others) == (1, 1)


class TestPage:
    @pytest.fixture
    def data(self):
        lost = asked(NEW, name="lost.png", conversation_id="abc-2", title="Lost")
        files = {"conversations.json": [asked(UPLOAD), lost], **OTHERS}
        return pack({**files, f"{UPLOAD}-cat.png": drawn.make()})

    def test_page_shows_imported_and_left_out_images(self, client, data):
        page = post(client, data)
        assert "2 conversations imported" in page
        assert "1 image was imported with its message." in page
        assert "3 other files of the archive were left out" in page
        assert "Conversation 2 “Lost”: Images that are missing in the file: 1." in page
        # Both conversations are there.
        assert "<h3>Left out</h3>" in page
        assert "Skipped" not in page

    def test_page_shows_them_in_chinese(self, client, data, settings):
        client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
        with translation.override("zh-hans"):
            page = post(client, data)
        assert "已随消息导入 1 张图片" in page
        assert "另有 3 个文件未导入" in page
        assert "文件中缺少的图片：1 张。" in page

    def test_an_archive_without_anything_else_says_no_more(self, client):
        page = post(client, WHOLE)
        assert "left out" not in page
        assert "imported with" not in page
