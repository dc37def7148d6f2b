"""People, conversations and turns for the tests of pages."""

import uuid

from django.test import Client
from django.urls import reverse

from chatsite.chat import turns
from chatsite.chat.models import Turn
from memory import context


def signed_in(user, **options):
    client = Client(**options)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def url(name, conversation):
    return reverse(f"conversation-{name}", args=[conversation.uuid])


def talk_in_turns(conversation, *texts, reply="Reply to: {}"):
    for text in texts:
        sent = turns.submit(conversation, text=text, client_id=uuid.uuid4().hex)
        claim = turns.claim(conversation.pk)
        built = context.build(conversation, newest=sent.message, model="demo")
        claim = turns.begin(claim, built, "demo")
        result = turns.Result(
            Turn.State.DONE, reply.format(text), tokens_input=40, tokens_output=7
        )
        turns.finish(claim, result)


def answer(conversation, text):
    """Let the turn that waits longest get this reply."""
    claim = turns.claim(conversation.pk)
    newest = Turn.objects.get(pk=claim.turn_id).user_message
    built = context.build(conversation, newest=newest, model="demo")
    claim = turns.begin(claim, built, "demo")
    turns.finish(claim, turns.Result(Turn.State.DONE, text))
