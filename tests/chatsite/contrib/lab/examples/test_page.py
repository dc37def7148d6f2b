"""Replies marked as examples by their owner: the dialog, the list, the limits, and what
goes when a message does.
"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.contrib.lab.examples import services
from chatsite.contrib.lab.examples.models import Example, ExampleAnswer
from memory.models import Conversation
from memory.transcript import ActionError, TextError

from ....scenes import (
    HTMX,
    Use,
    memory_url,
    menu_of,
    page_of,
    signed_in,
    url,
    use_tools,
    violations,
)

pytestmark = pytest.mark.django_db

LONG = "x" * (Example.MAX_CHARS + 1)


def mark(client, chat, seq=4, **values):
    values = {"label": "wrong", "correction": "I don't <know>.", **values}
    return client.post(url("example-post", chat, seq), values, headers=HTMX)


def listed(client, **query):
    return client.get(reverse("examples"), query).content.decode()


def test_a_reply_is_marked_from_its_menu_and_listed(client, conversation):
    offered = [
        "Mark as an example…" in menu_of(client, conversation, seq)
        for seq in range(1, 5)
    ]
    assert offered == [False, True, False, True]
    dialog = client.get(url("example", conversation, 4), headers=HTMX)
    assert "What should have been said" in dialog.content.decode()
    answer = mark(client, conversation)
    assert "Reply #4 is an example." in answer.content.decode()
    example = Example.objects.get()
    assert (example.author, example.label) == (conversation.owner, "wrong")
    assert conversation.changes.get().action == "example"
    page = listed(client)
    assert "I don&#x27;t &lt;know&gt;." in page
    assert "I don't <know>." not in page
    assert "Trip to Kyoto #4" in page
    assert 'href="/examples/"' in page_of(client, conversation)
    page = client.get(reverse("example", args=[example.pk])).content.decode()
    assert "What is my budget?" in page
    assert "Reply to: What is my budget?" in page
    assert violations() == []


def test_mark_is_changed_undone_and_removed(client, conversation):
    mark(client, conversation)
    mark(client, conversation, label="good", correction="")
    assert Example.objects.get().label == "good"
    answer = mark(client, conversation, label="")
    assert "#4 is no example." in answer.content.decode()
    assert not Example.objects.exists()
    # What the notice offers to undo.
    assert 'name="label" value="good"' in answer.content.decode()


def test_the_list_has_kinds_and_pages(client, conversation, monkeypatch):
    mark(client, conversation, 2, label="good")
    mark(client, conversation, 4)
    assert listed(client, label="good").count('class="card"') == 2
    assert "Trip to Kyoto #4" not in listed(client, label="good")
    assert "No examples here yet." in listed(client, label="form")
    monkeypatch.setattr("chatsite.contrib.lab.examples.views.PAGE_EXAMPLES", 1)
    first, second = listed(client), listed(client, page=2)
    assert ("#4</a>" in first, "#2</a>" in first) == (True, False)
    assert ("#4</a>" in second, "#2</a>" in second) == (False, True)


@pytest.mark.parametrize(
    ("seq", "values", "why"),
    [
        (4, {"label": "terrible"}, "Choose what kind"),
        (4, {"correction": " \u200b\n"}, "Write what should have been said"),
        (4, {"correction": LONG}, "the limit is 16,000"),
        (4, {"correction": "a\0"}, "This is not text"),
        (3, {}, "There is no reply #3"),
        (99, {}, "There is no reply #99"),
    ],
)
def test_page_explains_why_a_message_cannot_be_marked(
    client, conversation, seq, values, why
):
    answer = client.post(
        url("example-post", conversation, seq),
        {"label": "wrong", "correction": "Better", **values},
    )
    assert (answer.status_code, why in answer.content.decode()) == (409, True)
    assert not Example.objects.exists()


def test_a_request_for_a_tool_and_a_temporary_reply_are_no_examples(
    client, alice, conversation
):
    use_tools(conversation, "Look it up", Use())
    asked = conversation.messages.exclude(tool_calls=[]).get(role="assistant")
    with pytest.raises(ActionError):
        services.mark_example(conversation, asked.seq, alice, "good")
    Conversation.objects.update(temporary_until="2100-01-01T00:00Z")
    conversation.refresh_from_db()
    assert "Mark as an example" not in menu_of(client, conversation, 4)
    with pytest.raises(ActionError):
        services.mark_example(conversation, 4, alice, "good")


def test_a_person_has_so_many_and_each_is_so_long(alice, conversation, monkeypatch):
    monkeypatch.setattr(services, "MOST", 1)
    services.mark_example(conversation, 2, alice, "wrong", "x" * Example.MAX_CHARS)
    with pytest.raises(ActionError, match="which is the limit"):
        services.mark_example(conversation, 4, alice, "good")
    # What is there can still be changed.
    services.mark_example(conversation, 2, alice, "good")
    with pytest.raises(TextError):
        services.mark_example(conversation, 2, alice, "wrong", LONG)


def test_examples_and_answers_are_deleted_with_quoted_messages(
    client, alice, conversation
):
    for seq in (2, 4):
        example = services.mark_example(conversation, seq, alice, "good")
        of = {"conversation": conversation, "user": alice, "text": "Hello?"}
        ExampleAnswer.objects.create(example=example, **of)
    delete(client, conversation, 1)
    # Both requests had the first message.
    assert Example.objects.count() == 2
    assert not ExampleAnswer.objects.exists()
    delete(client, conversation, 4)
    assert Example.objects.get().message.seq == 2
    alice.delete()
    assert not Example.objects.exists()


def delete(client, chat, seq):
    target = memory_url("message", chat, seq=seq, name="delete")
    assert client.post(target, headers=HTMX).status_code == 200


def test_strangers_can_mark_nothing(bob, conversation):
    stranger = signed_in(bob)
    assert mark(stranger, conversation).status_code == 404
    answer = stranger.get(url("example", conversation, 4), headers=HTMX)
    assert answer.status_code == 404
    assert not Example.objects.exists()


def test_account_download_has_the_examples(alice, conversation):
    services.mark_example(conversation, 4, alice, "wrong", "No idea.")
    [row] = services.describe_own(alice)
    assert (row["reply"], row["correction"]) == (4, "No idea.")


def test_conversations_without_examples_cost_no_statement(client, conversation):
    """The page reads no rows of examples."""
    with CaptureQueriesContext(connection) as asked:
        page_of(client, conversation)
    assert not [each for each in asked if "examples_example" in each["sql"]]


def test_audit_finds_examples_of_what_is_no_reply(client, conversation):
    mark(client, conversation)
    Example.objects.update(message=conversation.messages.get(seq=1))
    [found] = violations()
    assert "R6.examples" in found
    assert "example of message #1, no reply" in found
