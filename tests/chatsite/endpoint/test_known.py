"""What the rule of identity is told of a person's conversations."""

import hashlib

import pytest

from chatsite.endpoint.models import ClientConversation, ClientMessage
from chatsite.endpoint.store.known import KnownToOwner
from memory import transcript

from ..scenes import talk_in_turns

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_path_has_each_message_as_its_client_sent_it_last(alice):
    made = transcript.create_conversation(alice)
    talk_in_turns(made, "Hello")
    rows = made.messages.order_by("seq")
    of_client = ClientConversation.objects.create(
        conversation=made, family=made.uuid, length=2
    )

    def keep(position, form, *, is_again=False):
        digest = hashlib.sha256(form.encode()).digest()
        ClientMessage.objects.create(
            conversation=made,
            owner=alice,
            position=position,
            digest=digest,
            chain=digest,
            role="user",
            size=len(form),
            is_again=is_again,
            message=rows[position],
        )
        return digest

    keep(0, "Hello")
    second = keep(1, "Reply")
    keep(0, "Hello, it is noon", is_again=True)
    last = keep(0, "Hello, it is one", is_again=True)
    path = KnownToOwner(alice.pk).read_path(str(of_client.pk), 0)
    assert [kept.digest for kept in path] == [last, second]
