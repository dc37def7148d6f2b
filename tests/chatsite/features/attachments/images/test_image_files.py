"""The bytes of images with their message: kept, shown to its owner, copied, gone."""

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from chatsite.features.attachments import uploads
from chatsite.features.attachments.models import ImageFile, Upload
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands
from chatsite.turns.copying import copies
from memory import actions, library
from memory.transcript import TextError

from ....scenes import answer, page_of, signed_in
from . import pictures
from .scenes import keep_image, send_images

pytestmark = pytest.mark.django_db


def address(message, place=0):
    args = (message.conversation.uuid, message.seq, place)
    return reverse("attachment-image", args=args)


class TestUpload:
    @pytest.mark.django_db(transaction=True)
    def test_an_image_is_kept_for_a_message(self, alice):
        client = signed_in(alice)
        file = SimpleUploadedFile("cat.webp", pictures.make("WEBP"))
        answered = client.post(reverse("attachment-upload"), {"file": file})
        assert answered.status_code == 201
        told = answered.json()
        assert told["image"] == {"width": 40, "height": 30}
        unsent = reverse("attachment-unsent", args=[told["id"]])
        shown = client.get(unsent)
        assert (shown.status_code, shown["Content-Type"]) == (200, "image/jpeg")
        assert Upload.objects.get().text == "[image: cat.webp, 40 x 30 pixels, 1 KB]"

    def test_waiting_upload_is_visible_to_its_owner_alone(self, alice, bob):
        unsent = reverse("attachment-unsent", args=[keep_image(alice).pk])
        assert signed_in(bob).get(unsent).status_code == 404

    def test_removed_ones_and_old_ones_are_gone(self, alice):
        uploads.remove_upload(alice, keep_image(alice).pk)
        keep_image(alice)
        Upload.objects.update(created_at=timezone.now() - timedelta(days=2))
        assert Upload.objects.count() == 1
        uploads.delete_expired_uploads()
        assert not Upload.objects.exists()

    def test_a_person_has_room_for_so_many(self, alice, bob, settings):
        settings.IMAGES_PER_PERSON_MB = 0
        with pytest.raises(TextError) as caught:
            keep_image(alice)
        assert "which is the limit" in caught.value.detail
        assert not Upload.objects.exists()


class TestMessage:
    def test_message_takes_the_image_over(self, conversation):
        message = send_images(conversation)
        row = ImageFile.objects.get()
        assert row.message == message
        assert message.files[0].image.width == 40
        assert "[image: cat.png, 40 x 30 pixels, 1 KB]" in message.text
        assert not Upload.objects.exists()

    def test_refused_message_leaves_the_image(self, conversation, settings):
        settings.QUEUED_PER_USER = 1
        send_images(conversation, keep_image(conversation.owner))
        with pytest.raises(CommandError):
            send_images(conversation)
        assert Upload.objects.get().data
        assert ImageFile.objects.count() == 1

    def test_an_edited_one_has_it_too(self, conversation):
        first = send_images(conversation)
        answer(conversation)
        values = {"seq": first.seq, "client_id": "b", "text": "And now?"}
        commands.edit_message(conversation, **values)
        second = conversation.messages.latest("seq")
        rows = ImageFile.objects.values_list("message", "file_id", "data")
        assert {row[0] for row in rows} == {first.pk, second.pk}
        assert len({row[1:] for row in rows}) == 1

    def test_a_branch_has_it_too(self, conversation):
        message = send_images(conversation)
        answer(conversation)
        made = copies.branch_conversation(conversation, message.seq)
        assert made.messages.get(seq=message.seq).image_files.get().data
        assert ImageFile.objects.count() == 2

    def test_copy_is_refused_without_room(self, conversation, settings):
        message = send_images(conversation)
        answer(conversation)
        settings.IMAGES_PER_PERSON_MB = 0
        with pytest.raises(CommandError):
            copies.branch_conversation(conversation, message.seq)
        assert ImageFile.objects.count() == 1

    @pytest.mark.parametrize("what", ["message", "conversation"])
    def test_deletion_of_a_message_removes_its_image(self, conversation, what):
        message = send_images(conversation)
        answer(conversation)
        if what == "message":
            actions.delete_message(conversation, message.seq)
        else:
            library.erase_conversation(conversation)
        assert not ImageFile.objects.exists()


class TestShown:
    def test_owner_gets_the_image_and_nothing_else(self, conversation, alice):
        message = send_images(conversation)
        shown = signed_in(alice).get(address(message))
        assert shown["Content-Type"] == "image/png"
        assert shown["X-Content-Type-Options"] == "nosniff"
        assert shown["Content-Disposition"].startswith("attachment")
        assert "sandbox" in shown["Content-Security-Policy"]
        assert pictures.open_image(shown.content).size == (40, 30)
        small = signed_in(alice).get(f"{address(message)}?size=small")
        assert small["Content-Type"] == "image/jpeg"

    def test_strangers_and_other_places_get_nothing(self, conversation, alice, bob):
        message = send_images(conversation)
        assert signed_in(bob).get(address(message)).status_code == 404
        assert signed_in(alice).get(address(message, 1)).status_code == 404

    def test_the_transcript_shows_it_by_its_address(self, conversation, alice):
        message = send_images(conversation, keep_image(alice, '<b>"cat".png'))
        page = page_of(signed_in(alice), conversation)
        assert f'src="{address(message)}?size=small"' in page
        assert 'alt="&lt;b&gt;&quot;cat&quot;.png"' in page
        assert "40 × 30" in page
