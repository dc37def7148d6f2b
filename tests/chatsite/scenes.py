"""People, conversations and turns for the tests of the site."""

import html
import uuid
from dataclasses import dataclass, field
from datetime import timedelta

from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chatsite.jobs import tasks
from chatsite.turns import audit as turn_audit
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Job, Turn
from memory import context, transcript
from memory.integrity import audit
from memory.leases import Claim
from memory.models import Message

HTMX = {"HX-Request": "true"}


def signed_in(user, **options):
    client = Client(**options)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def url(name, conversation, *numbers):
    return reverse(f"conversation-{name}", args=[conversation.uuid, *numbers])


def memory_url(view, conversation, **kwargs):
    return reverse(f"memory-{view}", kwargs={"uuid": conversation.uuid, **kwargs})


def page_of(client, conversation):
    return client.get(url("detail", conversation)).content.decode()


def menu_of(client, conversation, seq):
    """Return the menu of a message, as a page loads it."""
    answer = client.get(url("message-menu", conversation, seq), headers=HTMX)
    return answer.content.decode()


def submit(conversation, text="Hello", client_id=None):
    client_id = client_id or uuid.uuid4().hex
    return commands.submit_message(conversation, text=text, client_id=client_id)


def answer(conversation, text="Reply", state=Turn.State.DONE, **reported):
    """Claim the turn that waits longest and end it as a runner would."""
    claim = lifecycle.claim(conversation.pk)
    newest = Turn.objects.get(pk=claim.row_id).user_message
    built = context.build_request_context(conversation, newest=newest, model="demo")
    claim = lifecycle.begin(claim, built, "demo")
    return lifecycle.finish(claim, lifecycle.TurnResult(state, text, **reported))


def talk_in_turns(conversation, *texts, reply="Reply to: {}"):
    for text in texts:
        submit(conversation, text)
        answer(conversation, reply.format(text), tokens_input=40, tokens_output=7)


@dataclass
class Use:
    """One call of a tool. `result` None: there is none yet; `late`: the text of one
    that came in after the turn; `columns`: more of the call's row."""

    name: str = "search_transcript"
    arguments: dict = field(default_factory=lambda: {"query": "budget"})
    state: str = "done"
    result: str | None = "#2: 3,200 euros"
    sent: str = ""
    late: str | None = None
    columns: dict = field(default_factory=dict)
    call_id: str = ""


def use_tools(
    conversation, text, *uses, asked="", reply="Here it is.", state=Turn.State.DONE
):
    """A turn whose model called tools before its reply (None: there is none)."""
    turn = submit(conversation, text).turn
    results = sum(use.result is not None for use in uses)
    transcript.reserve_numbers(conversation, results + 1)
    seqs = iter(range(turn.reply_seq, turn.reply_seq + results + 2))

    def write(role, said, **values):
        values = {"role": role, "text": said, **values}
        row = Message(conversation=conversation, seq=next(seqs), **values)
        return transcript._save_message(row)

    named = [
        {
            "name": use.name,
            "args": use.arguments,
            "id": use.call_id or f"c{turn.pk}-{place}",
        }
        for place, use in enumerate(uses)
    ]
    calls = [{**call, "type": "tool_call"} for call in named]
    request = write("assistant", asked, tool_calls=calls)
    began = timezone.now()
    for place, (use, call) in enumerate(zip(uses, named, strict=True)):
        result = None
        if use.result is not None:
            values = {"sent_text": use.sent, "tool_call_id": call["id"]}
            result = write("tool", use.result, **values)
        is_over = use.state in ("done", "failed", "unknown", "cancelled")
        values = {
            "started_at": None if use.state in ("asked", "waiting") else began,
            "finished_at": began + timedelta(seconds=1.2) if is_over else None,
        }
        conversation.tool_calls.create(
            turn=turn,
            request=request,
            place=place,
            call_id=call["id"],
            name=use.name,
            arguments=use.arguments,
            state=use.state,
            result=result,
            **{**values, **use.columns},
        )
    answered = write("assistant", reply) if reply is not None else None
    unfinished = state in Turn.UNFINISHED
    Turn.objects.filter(pk=turn.pk).update(
        state=state,
        reply=answered,
        text=reply or "",
        attempt=1,
        owner="test" if state == Turn.State.RUNNING else "",
        lease_until=began + timedelta(days=1) if unfinished else None,
        finished_at=None if unfinished else began,
    )
    for use, call in zip(uses, turn.tool_calls.order_by("place"), strict=True):
        if use.late is not None:
            arrive(call, use.late)
    return turn


def arrive(call, text):
    """The result of a call that answers late is here."""
    seq = transcript.reserve_numbers(call.conversation, 1)
    values = {"role": "tool", "text": text, "tool_call_id": call.call_id}
    values["late_for"] = call.request.seq
    row = Message(conversation=call.conversation, seq=seq, **values)
    call.late_result, call.state = transcript._save_message(row), "done"
    call.finished_at = call.started_at + timedelta(hours=2)
    call.save()
    return row


def work_off():
    """Do the jobs that wait to their ends, as tasks of a server process would."""
    for job in Job.objects.filter(state=Job.State.QUEUED):
        async_to_sync(tasks.run_job)(Claim(job.pk, job.owner))


def propose(client, conversation, seq, **fields):
    """Propose a summary, and return the content of its dialog."""
    target = memory_url("propose", conversation, seq=seq)
    client.post(target, fields, headers=HTMX)
    work_off()
    page = client.get(memory_url("proposal", conversation, seq=seq), headers=HTMX)
    return html.unescape(page.content.decode())


def violations():
    """Return the violations that the audits of the memory and of the turns find."""
    checks = (audit.check_memory, turn_audit.check_turns)
    return [str(found) for check in checks for found in check()]
