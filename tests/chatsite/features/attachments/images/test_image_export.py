"""Images in export.json, and read from it again by an import that trusts nothing."""

from base64 import b64encode

import pytest

from chatsite.features.attachments.images import audit, export
from chatsite.features.attachments.models import ImageFile
from chatsite.features.importing.exporting.for_staff import mask_export
from chatsite.features.importing.exporting.thread import export_thread
from memory.models import Conversation
from memory.view import rebuilding

from ....scenes import answer, violations
from ...importing.test_importing import as_json, take
from . import pictures
from .scenes import keep_image, send_images

pytestmark = pytest.mark.django_db


@pytest.fixture
def exported(conversation):
    owner = conversation.owner
    send_images(conversation, keep_image(owner), keep_image(owner, colour="blue"))
    answer(conversation)
    return as_json(export_thread(conversation))


def imported(user, value):
    outcome = take(user, value)
    assert outcome.imported, outcome.notices
    return Conversation.objects.get(owner=user)


class TestRoundTrip:
    def test_export_keeps_images_and_proved_requests(self, bob, exported):
        made = imported(bob, exported)
        rows = made.image_files.order_by("pk")
        assert [bytes(row.data) for row in rows] == [
            bytes(row.data)
            for row in ImageFile.objects.exclude(conversation=made).order_by("pk")
        ]
        calls = made.model_calls.filter(purpose="reply")
        assert any(call.refs.get("images") for call in calls)
        assert all(rebuilding.verify_context(call) for call in calls)
        assert not violations()
        assert as_json(export_thread(made))["images"] == exported["images"]

    def test_staff_who_may_not_read_get_none(self, exported, conversation):
        [first, _second] = mask_export(export_thread(conversation))["images"]
        assert first["data"] != exported["images"][0]["data"]

    def test_a_file_has_as_many_as_can_be_imported(self, conversation, monkeypatch):
        send_images(conversation, keep_image(conversation.owner, "old.png"))
        newest = send_images(conversation)
        size = newest.image_files.get().size
        monkeypatch.setattr(export, "MOST_OF_EXPORT", size)
        rows = export_thread(conversation)["images"]
        assert [row["seq"] for row in rows] == [newest.seq]

    def test_import_stops_at_the_users_room(self, bob, exported, settings):
        settings.IMAGES_PER_PERSON_MB = 0
        outcome = take(bob, exported)
        [made] = outcome.imported
        assert "as yours may have 0 MB: 2." in outcome.notices[0]
        assert not made.image_files.exists()
        assert made.messages.filter(text__contains="[image: cat.png").exists()


def b64(data):
    return b64encode(data).decode()


LARGE = pictures.make("JPEG", (4_000, 3_000))
FORGED = {
    "another image": {"data": b64(pictures.make(colour="green"))},
    "no image": {"data": b64(b"<script>alert(1)</script>")},
    "no base64": {"data": "#" * 9},
    "a page as the small one": {"small": b64(b"<html>")},
    "a large one as the small one": {"small": b64(LARGE)},
    "another place": {"place": 7},
    "another message": {"seq": 2},
}


class TestForged:
    @pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
    def test_image_that_differs_from_its_message_is_left_out(
        self, bob, exported, change
    ):
        exported["images"] = [exported["images"][0] | change, *exported["images"][:1]]
        made = imported(bob, exported)
        row = made.image_files.get()
        assert bytes(row.data) == pictures.make(colour="red")

    @pytest.mark.parametrize("change", [{"type": "image/svg+xml"}, {"width": 0}])
    def test_other_kinds_and_sizes_are_refused(self, bob, exported, change):
        for row in exported["messages"]:
            for place in row["attachments"]:
                place["image"] |= change
        assert not take(bob, exported).imported

    def test_a_hash_alone_makes_no_large_image(self, bob, exported, settings):
        settings.IMAGE_MAX_MEGAPIXELS = 0
        assert not imported(bob, exported).image_files.exists()


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_the_head_of_an_image_says_its_size(kind):
    measured = export.measure_bytes(pictures.make(kind, (321, 123)))
    assert measured == (f"image/{kind.lower()}", 321, 123)


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xd8\xff", b"\xff\xd8\xff\xe0\0\0" * 9, export.PNG + b"IHDR"]
)
def test_file_that_is_no_image_has_no_size(data):
    assert export.measure_bytes(data) is None


def test_the_audit_finds_an_image_that_was_exchanged(conversation):
    message = send_images(conversation)
    assert list(audit.find_false_images()) == []
    message.image_files.update(data=pictures.make(colour="green"))
    [found] = audit.find_false_images()
    assert str(message.seq) in str(found)
