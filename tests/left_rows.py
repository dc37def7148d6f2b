"""Rows of apps, and the erasure of what they belong to when no app has their
tables any more: run in processes of those sites.
"""

import json
from datetime import timedelta
from uuid import uuid4

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection
from django.utils import timezone

from chatsite.accounts import account
from memory import actions, library, transcript
from memory.models import Conversation, ModelCall

TABLES = (
    *("chat_feedback", "memory_label", "memory_label_conversations", "memory_rule"),
    *("chat_share", "chat_toolcall", "chat_resultfile", "desk_experiment"),
    *("memory_upload", "attachments_imagefile"),
    *("examples_example", "examples_exampleanswer", "facts_fact"),
    *("endpoint_clientrequest", "endpoint_clientmessage", "endpoint_bodypiece"),
    "endpoint_providersummary",
    *("endpoint_clientconversation", "endpoint_apikey", "budgets_budget"),
    *("budgets_monthlyuse", "trials_trial"),
)


def plant():
    """Two conversations of Alice with rows in each table, and one of Bob with an
    experiment that Alice has started."""
    from chatsite.contrib.lab.experiments.models import Experiment
    from chatsite.contrib.operators.budgets.models import Budget, MonthlyUse
    from chatsite.features.attachments.models import Upload

    people = get_user_model().objects
    alice, bob = (people.create_user(name) for name in ("alice", "bob"))
    for _ in range(2):
        _plant_rows(transcript.create_conversation(alice))
    Upload.objects.create(owner=alice, name="a.txt", size=1, text="a", tokens=1)
    values = {"model": "demo", "budget": 1, "last_seq": 1}
    other = transcript.create_conversation(bob)
    Experiment.objects.create(conversation=other, user=alice, **values)
    _plant_client(alice, other)
    Budget.objects.create(user=alice, amount=1)
    MonthlyUse.objects.create(user=alice, month="2026-11-01")
    print(json.dumps(_count_rows()))  # noqa: T201


def _plant_rows(conversation):
    from chatsite.contrib.lab.examples.models import Example, ExampleAnswer
    from chatsite.contrib.lab.experiments.models import Experiment
    from chatsite.contrib.lab.trials.models import Trial
    from chatsite.features.attachments.models import ImageFile
    from chatsite.features.facts.models import Fact
    from chatsite.features.feedback.models import Feedback
    from chatsite.features.labels import services
    from chatsite.features.rules.models import Rule
    from chatsite.features.sharing.models import Share
    from chatsite.features.tools.models import ResultFile, ToolCall
    from chatsite.turns import commands

    turn = commands.submit_message(conversation, text="Hello", client_id="1")
    message = conversation.messages.get()
    of = {"conversation": conversation}
    Feedback.objects.create(**of, message=message, verdict="good")
    by = {"author": conversation.owner, "label": "good"}
    example = Example.objects.create(**of, **by, message=message)
    ExampleAnswer.objects.create(**of, example=example, user=conversation.owner)
    [label] = services.find_or_make_labels(conversation.owner, ["work"])
    services.give_labels([label], [conversation])
    first = Rule.objects.create(**of, message=message, end=5, state="confirmed")
    again = {"message": message, "start": 1, "end": 5}
    Rule.objects.create(**of, **again, state="replaced", replaced_by=first)
    stated = {**of, "owner": conversation.owner, "message": message, "end": 5}
    known = Fact.objects.create(**stated, start=0, state="kept")
    Fact.objects.create(**stated, start=1, state="replaced", replaced_by=known)
    expires_at = timezone.now() + timedelta(days=1)
    token = str(conversation.pk).zfill(32)
    Share.objects.create(**of, token=token, last_seq=1, expires_at=expires_at)
    turn = conversation.turns.get()
    ToolCall.objects.create(**of, turn=turn, request=message, place=0, name="t")
    ResultFile.objects.create(**of, message=message, place=0)
    values = {"file_id": uuid4(), "size": 1, "data": b"a", "small": b"a"}
    ImageFile.objects.create(**of, message=message, **values)
    values = {"model": "demo", "budget": 1, "last_seq": 1}
    Experiment.objects.create(**of, user=conversation.owner, **values)
    Trial.objects.create(**of, message=message, model="demo")


def _plant_client(owner, other):
    """A key, requests with it in each conversation of its owner, and a gateway's.

    The gateway's is in one conversation of another user, for whom the key has spoken.
    """
    from chatsite.contrib.endpoint import models

    key = models.ApiKey.objects.create(owner=owner, name="a", sha256="a", hint="wp_")
    for conversation in [*Conversation.objects.filter(owner=owner), other]:
        of = {"conversation": conversation}
        models.ClientConversation.objects.create(**of, key=key, family=uuid4())
        sent = {"purpose": "reply", "model": "demo", "tokens_estimated": 1}
        call = ModelCall.objects.create(**of, **sent)
        values = {"owner": conversation.owner, "key": key, "position": 1}
        models.ClientRequest.objects.create(call=call, **values)
        models.BodyPiece.objects.create(**of, number=1, digest=b"a", text="a")
        models.ProviderSummary.objects.create(**of, api="messages", last_seq=1)
        for message in conversation.messages.all():
            models.ClientMessage.objects.create(
                **of,
                owner=conversation.owner,
                message=message,
                **{"position": 1, "role": "user", "size": 1},
                **{"digest": b"a", "chain": b"a"},
            )


def erase():
    """Erases one of Alice's conversations, then her account."""
    alice = get_user_model().objects.get(username="alice")
    library.erase_conversation(Conversation.objects.filter(owner=alice).first())
    after_one = _count_rows()
    account.delete_account(alice)
    assert not get_user_model().objects.filter(username="alice").exists()
    print(json.dumps([after_one, _count_rows()]))  # noqa: T201


def delete_message():
    """Deletes a message of one of Alice's conversations."""
    conversation = Conversation.objects.filter(owner__username="alice").first()
    actions.delete_message(conversation, 1)
    print(json.dumps(_count_rows()))  # noqa: T201


def plant_group():
    """A budget of a group."""
    from chatsite.contrib.operators.budgets.models import Budget

    Budget.objects.create(group=Group.objects.create(name="Research"), amount=1)
    print(json.dumps(_count_rows()))  # noqa: T201


def delete_past_the_pages():
    """Deletes the groups and the people as a command or another app does."""
    Group.objects.all().delete()
    for conversation in Conversation.objects.all():
        library.erase_conversation(conversation)
    get_user_model().objects.get(username="alice").delete()
    get_user_model().objects.all().delete()
    print(json.dumps(_count_rows()))  # noqa: T201


def _count_rows():
    counts = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608
            [counts[table]] = cursor.fetchone()
    return counts
