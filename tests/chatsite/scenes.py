"""People, conversations and turns for the tests of the site."""

import html
import uuid

from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse

from chatsite.jobs import queue, tasks
from chatsite.turns import audit as turn_audit
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Job, Turn
from memory import context
from memory.integrity import audit

HTMX = {"HX-Request": "true"}


def signed_in(user, **options):
    client = Client(**options)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def url(name, conversation):
    return reverse(f"conversation-{name}", args=[conversation.uuid])


def memory_url(view, conversation, **kwargs):
    return reverse(f"memory-{view}", kwargs={"uuid": conversation.uuid, **kwargs})


def page_of(client, conversation):
    return client.get(url("detail", conversation)).content.decode()


def submit(conversation, text="Hello", client_id=None):
    client_id = client_id or uuid.uuid4().hex
    return commands.submit(conversation, text=text, client_id=client_id)


def answer(conversation, text="Reply", state=Turn.State.DONE, **reported):
    """Claim the turn that waits longest and end it as a runner would."""
    claim = lifecycle.claim(conversation.pk)
    newest = Turn.objects.get(pk=claim.turn_id).user_message
    built = context.build(conversation, newest=newest, model="demo")
    claim = lifecycle.begin(claim, built, "demo")
    return lifecycle.finish(claim, lifecycle.Result(state, text, **reported))


def talk_in_turns(conversation, *texts, reply="Reply to: {}"):
    for text in texts:
        submit(conversation, text)
        answer(conversation, reply.format(text), tokens_input=40, tokens_output=7)


def work_off():
    """Do the jobs that wait to their ends, as tasks of a server process would."""
    for job in Job.objects.filter(state=Job.State.QUEUED):
        async_to_sync(tasks.run)(queue.Claim(job.pk, job.owner))


def propose(client, conversation, seq, **fields):
    """What the dialog shows when a summary that was asked for is there."""
    target = memory_url("propose", conversation, seq=seq)
    client.post(target, fields, headers=HTMX)
    work_off()
    page = client.get(memory_url("proposal", conversation, seq=seq), headers=HTMX)
    return html.unescape(page.content.decode())


def violations():
    """What the audits of the memory and of the turns find."""
    return [str(found) for check in (audit, turn_audit) for found in check.check()]
