"""The history of a user's conversations, as the identity rules query it."""

import hashlib
import json

import pytest
from django.db.models.sql.compiler import SQLCompiler

from chatsite.contrib.endpoint.bounding.message_selection import find_covered
from chatsite.contrib.endpoint.identity.history import read_history
from chatsite.contrib.endpoint.identity.known import MOST_PLACES
from chatsite.contrib.endpoint.models import (
    BodyPiece,
    ClientConversation,
    ClientMessage,
)
from chatsite.contrib.endpoint.store.owner_history import GONE, OwnerHistory
from memory import library, transcript

from ...scenes import talk_in_turns

pytestmark = pytest.mark.django_db(transaction=True)


def make(alice, **more):
    made = transcript.create_conversation(alice)
    talk_in_turns(made, "Hello")
    return ClientConversation.objects.create(
        conversation=made, family=made.uuid, length=2, **more
    )


def keep(of_client, position, form, **more):
    conversation = of_client.conversation
    digest = hashlib.sha256(form.encode()).digest()
    ClientMessage.objects.create(
        conversation=conversation,
        owner=conversation.owner,
        position=position,
        digest=digest,
        chain=digest,
        role="user",
        size=len(form),
        message=conversation.messages.order_by("seq")[min(position, 1)],
        **more,
    )
    return digest


def read(of_client, first=0):
    known = OwnerHistory(of_client.conversation.owner_id)
    path = known.read_path(str(of_client.pk), first)
    return [(kept.digest, kept.is_served) for kept in path]


def test_a_path_has_each_message_as_its_client_sent_it_last(alice):
    made = make(alice)
    keep(made, 0, "Hello")
    second = keep(made, 1, "Reply")
    keep(made, 0, "Hello, it is noon", is_again=True)
    last = keep(made, 0, "Hello, it is one", is_again=True)
    assert read(made) == [(last, False), (second, False)]


def test_a_reply_that_its_client_has_changed_was_served_all_the_same(alice):
    made = make(alice)
    keep(made, 0, "Hello")
    keep(made, 1, "Reply", is_served=True)
    last = keep(made, 1, "<i>Reply</i>", is_again=True)
    assert read(made, 1) == [(last, True)]


def test_a_branch_has_its_own_forms_of_what_it_shares(alice):
    parent = make(alice)
    first = keep(parent, 0, "Hello")
    keep(parent, 1, "Reply", is_served=True)
    branch = make(alice, parent=parent.conversation, shared=2)
    own = keep(branch, 1, "<b>Reply</b>", is_again=True)
    new = keep(branch, 2, "And now?")
    later = keep(parent, 0, "Hello, it is noon", is_again=True)
    assert read(parent)[0] == (later, False)
    assert read(branch) == [(first, False), (own, True), (new, False)]
    changed = keep(branch, 0, "Hello, it is one", is_again=True)
    assert read(branch)[0] == (changed, False)


def test_a_branch_keeps_its_positions_without_its_parent(alice):
    parent = make(alice)
    keep(parent, 0, "Hello")
    keep(parent, 1, "Reply")
    branch = make(alice, parent=parent.conversation, shared=2)
    own = keep(branch, 1, "Reply", is_again=True)
    new = keep(branch, 2, "And now?")
    library.erase_conversation(parent.conversation)
    rest = [(own, False), (new, False)]
    assert read(branch) == [(GONE.digest, False), *rest]
    assert read(branch, 1) == rest


def test_the_text_of_a_message_with_an_image_is_all_of_its_form(alice):
    made = make(alice)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    parts = [{"type": "text", "text": "Hello"}, image]
    sent = {"role": "user", "content": parts}
    (message,) = read_history("chat", {"messages": [sent]}).messages
    keep(made, 0, message.text)
    made.conversation.client_messages.update(digest=message.digest)
    row = made.conversation.messages.get(seq=1)
    of = {"conversation": made.conversation, "message": row}
    BodyPiece.objects.create(number=1, digest=b"1", text=json.dumps(sent), **of)
    assert "media" in message.text
    assert OwnerHistory(alice.pk).read_text(str(made.pk), 0) == message.text


def test_covered_position_is_found_without_the_parent(alice):
    parent = make(alice)
    keep(parent, 0, "Hello")
    keep(parent, 1, "Reply")
    branch = make(alice, parent=parent.conversation, shared=2)
    keep(branch, 1, "Reply", is_again=True)
    assert find_covered(branch, 2) == 1
    library.erase_conversation(parent.conversation)
    branch = ClientConversation.objects.get(pk=branch.pk)
    assert [branch.find_seq(at) for at in (0, 1)] == [1, 2]
    assert [find_covered(branch, cutoff) for cutoff in (1, 2)] == [0, 1]


def test_branch_has_no_later_messages_of_its_parent(alice):
    parent = make(alice)
    keep(parent, 0, "Hello")
    branch = make(alice, parent=parent.conversation, shared=2)
    keep(branch, 2, "And now?")
    talk_in_turns(parent.conversation, "Once more")
    keep(parent, 1, "Another reply")
    parent.conversation.client_messages.filter(position=1).update(
        message=parent.conversation.messages.get(seq=4)
    )
    assert branch.find_seq(1) <= 2


def test_places_of_a_hash_are_bounded_in_the_statement(alice, monkeypatch):
    """An agent begins each of its conversations with the same words."""
    made = [make(alice) for _ in range(MOST_PLACES + 4)]
    (hello,) = {keep(each, 0, "Hello") for each in made}
    reply = keep(made[0], 1, "Reply")
    tips = [made[2], made[0]]
    ClientConversation.objects.filter(pk=made[2].pk).update(length=1)
    ClientConversation.objects.filter(pk=made[0].pk).update(length=1)
    rows, read_rows = [], SQLCompiler.results_iter

    def count_rows(self, *given, **more):
        found = [*read_rows(self, *given, **more)]
        rows.extend(found)
        return iter(found)

    monkeypatch.setattr(SQLCompiler, "results_iter", count_rows)
    inside = [each for each in made[::-1] if each not in tips]
    expected = [str(each.pk) for each in (*tips, *inside)][:MOST_PLACES]
    known = OwnerHistory(alice.pk)
    for find in (known.find_chains, known.find_messages):
        rows.clear()
        found = find([hello, reply])
        assert len(rows) == MOST_PLACES + 1
        # Tips first, then newest first.
        assert [each.conversation for each in found[hello]] == expected
        assert [each.is_tip for each in found[hello][:3]] == [True, True, False]
        assert [each.conversation for each in found[reply]] == [str(made[0].pk)]
