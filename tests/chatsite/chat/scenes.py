"""People, conversations and turns for the tests of pages."""

import html
import uuid

from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse

from chatsite.chat import job_tasks, jobs, turns
from chatsite.chat.models import Job, Turn
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


def work_off():
    """Do the jobs that wait to their ends, as tasks of a server process would."""
    for job in Job.objects.filter(state=Job.State.QUEUED):
        async_to_sync(job_tasks.run)(jobs.Claim(job.pk, job.owner))


def propose(client, conversation, seq, **fields):
    """What the dialog shows when a summary that was asked for is there."""
    headers = {"HX-Request": "true"}
    base = f"/c/{conversation.uuid}/memory/fold/{seq}"
    client.post(f"{base}/propose/", fields, headers=headers)
    work_off()
    page = client.get(f"{base}/proposal/", headers=headers)
    return html.unescape(page.content.decode())


def answer(conversation, text):
    """Let the turn that waits longest get this reply."""
    claim = turns.claim(conversation.pk)
    newest = Turn.objects.get(pk=claim.turn_id).user_message
    built = context.build(conversation, newest=newest, model="demo")
    claim = turns.begin(claim, built, "demo")
    turns.finish(claim, turns.Result(Turn.State.DONE, text))
