"""People, conversations and turns for the tests of pages."""

import html
import uuid

from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse

from chatsite.jobs import queue, tasks
from chatsite.turns import lifecycle
from chatsite.turns.models import Job, Turn
from memory import context


def signed_in(user, **options):
    client = Client(**options)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def url(name, conversation):
    return reverse(f"conversation-{name}", args=[conversation.uuid])


def talk_in_turns(conversation, *texts, reply="Reply to: {}"):
    for text in texts:
        sent = lifecycle.submit(conversation, text=text, client_id=uuid.uuid4().hex)
        claim = lifecycle.claim(conversation.pk)
        built = context.build(conversation, newest=sent.message, model="demo")
        claim = lifecycle.begin(claim, built, "demo")
        result = lifecycle.Result(
            Turn.State.DONE, reply.format(text), tokens_input=40, tokens_output=7
        )
        lifecycle.finish(claim, result)


def work_off():
    """Do the jobs that wait to their ends, as tasks of a server process would."""
    for job in Job.objects.filter(state=Job.State.QUEUED):
        async_to_sync(tasks.run)(queue.Claim(job.pk, job.owner))


def propose(client, conversation, seq, **fields):
    """What the dialog shows when a summary that was asked for is there."""
    headers = {"HX-Request": "true"}
    base = f"/c/{conversation.uuid}/memory/summarise/{seq}"
    client.post(f"{base}/propose/", fields, headers=headers)
    work_off()
    page = client.get(f"{base}/proposal/", headers=headers)
    return html.unescape(page.content.decode())


def answer(conversation, text):
    """Let the turn that waits longest get this reply."""
    claim = lifecycle.claim(conversation.pk)
    newest = Turn.objects.get(pk=claim.turn_id).user_message
    built = context.build(conversation, newest=newest, model="demo")
    claim = lifecycle.begin(claim, built, "demo")
    lifecycle.finish(claim, lifecycle.Result(Turn.State.DONE, text))
