"""Images on links: shown to strangers where their owner has chosen so, or named."""

import pytest
from django.test import Client
from django.urls import reverse

from chatsite.features.sharing.services import create_share, revoke_share
from memory import actions

from ....scenes import HTMX, answer, signed_in, submit
from . import pictures
from .scenes import send_images

pytestmark = pytest.mark.django_db


@pytest.fixture
def message(conversation):
    made = send_images(conversation)
    answer(conversation)
    return made


def address(share, message, place=0):
    return reverse("shared-image", args=(share.token, message.seq, place))


def page_of(share):
    answered = Client().get(reverse("shared-page", args=[share.token]))
    return answered.content.decode()


def test_a_link_with_images_shows_them(conversation, message):
    share = create_share(conversation, with_images=True)
    assert f'src="images/{message.seq}/0/"' in page_of(share)
    shown = Client().get(address(share, message))
    assert pictures.open_image(shown.content).size == (40, 30)
    assert shown["Content-Type"] == "image/png"
    assert shown["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in shown["Content-Security-Policy"]
    assert Client().get(address(share, message, 1)).status_code == 404


def test_link_without_images_has_their_names_and_no_bytes(conversation, message):
    share = create_share(conversation, with_view=True)
    page = page_of(share)
    assert "[image: cat.png, 40 x 30 pixels, 1 KB]" in page
    assert "/images/" not in page
    assert Client().get(address(share, message)).status_code == 404
    raw = Client().get(reverse("shared-raw", args=[share.token])).content.decode()
    assert "data:image/png;base64,… (" in raw
    assert "iVBOR" not in raw


@pytest.mark.parametrize("end", ["revoked", "deleted", "hidden"])
def test_message_gone_from_a_link_shows_no_image(conversation, message, end):
    share = create_share(conversation, with_images=True)
    if end == "revoked":
        revoke_share(conversation, share.pk)
    elif end == "deleted":
        actions.delete_message(conversation, message.seq)
    else:
        actions.exclude_messages(conversation, [message.seq])
    assert Client().get(address(share, message)).status_code == 404


def test_later_images_are_not_on_it(conversation, message):
    share = create_share(conversation, with_images=True)
    later = send_images(conversation)
    assert Client().get(address(share, later)).status_code == 404


def test_owner_chooses_images_if_there_are_any(conversation, alice):
    client = signed_in(alice)
    dialog = reverse("share", args=[conversation.uuid])
    assert "with_images" not in client.get(dialog, headers=HTMX).content.decode()
    send_images(conversation)
    answer(conversation)
    submit(conversation, "And?")
    assert "with_images" in client.get(dialog, headers=HTMX).content.decode()
    made = reverse("share-create", args=[conversation.uuid])
    client.post(made, {"with_images": "on", "days": 7}, headers=HTMX)
    assert conversation.shares.get().with_images
