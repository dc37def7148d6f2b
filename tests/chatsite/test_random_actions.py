"""Whatever people, models, tools and crashes do, in whatever order: the audit finds
nothing after any of it, and nothing that is deleted is said again.

FUZZ_SEED repeats a run; ACTION_STEPS takes more steps.
"""

import os
import random
import uuid
from collections import deque
from contextlib import suppress

import pytest
from asgiref.sync import async_to_sync
from django.db.models.functions import Now

from chatsite.features.facts.models import Fact
from chatsite.features.feedback.services import give_feedback
from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.labels import services as labels
from chatsite.features.rules.services import confirm_rule
from chatsite.features.sharing import services as sharing
from chatsite.features.tools import consent, late_results, registry
from chatsite.features.tools.context import CallCancelledError, PendingResult
from chatsite.features.tools.models import ToolCall
from chatsite.features.tools.tool_loop import records
from chatsite.features.tools.tool_loop.answers import CallAnswer, NoRoomError
from chatsite.features.tools.tool_loop.call_requests import CallRequest
from chatsite.pages.presenters import context_pane, thread_json
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, lifecycle, requests, variations
from chatsite.turns.copying import copies
from chatsite.turns.models import Turn
from memory import actions, context, library, transcript
from memory.compaction import lease
from memory.models import Conversation, ModelCall
from memory.view.variation import Variation
from tests import rounds
from tests.fakes import own_tools
from tests.memory.scenes import compact
from tests.remembered import read_tables
from tests.shown_parts import check_context

from .features.importing.test_importing import as_json, take
from .pages.test_attachments import send as send_files
from .scenes import HTMX, memory_url, signed_in, submit, url, violations

SEED = int(os.environ.get("FUZZ_SEED", "20261122"))
# The same steps on PostgreSQL, where each takes twice as long: fewer of them.
USUAL_STEPS = rounds.choose_for_database(
    {"sqlite": 180, "postgresql": 120}, {"sqlite": 300, "postgresql": 150}
)
STEPS = int(os.environ.get("ACTION_STEPS", USUAL_STEPS))
# Of one conversation: then another one is begun, and the audit stays quick.
EACH = 60
State = ToolCall.State
TOOLS = ("look_up", "order", "order", "send_mail", "no_such_tool")
REFUSALS = (
    *(CommandError, actions.ActionError, transcript.TextError, NoRoomError),
    *(sharing.ShareError, Conversation.DoesNotExist),
)


class People:
    """One conversation, its owner's browser, and the process that answers."""

    def __init__(self, owner, randomness):
        self.owner, self.random = owner, randomness
        self.client = signed_in(owner)
        policy = {"preset": "langgraph"} if randomness.random() < 0.5 else {}
        policy["facts"] = "use"
        made = transcript.create_conversation(owner, policy=policy)
        rows = Conversation.objects.filter(pk=made.pk)
        rows.update(tools=own_tools.NAMES, answers_late=randomness.random() < 0.5)
        self.key, self.claim, self.copied = made.pk, None, []
        self.elsewhere = transcript.create_conversation(owner)
        submit(self.elsewhere, "My tea is green and from Lisbon.")
        for _ in range(2):
            self.do_send()

    @property
    def conversation(self):
        return Conversation.objects.get(pk=self.key)

    def act(self):
        """One action; its name."""
        names = [name for name in dir(self) if name.startswith("do_")]
        weights = [
            getattr(self, name).__func__.__dict__.get("weight", 1) for name in names
        ]
        [name] = self.random.choices(names, weights)
        with suppress(*REFUSALS):
            getattr(self, name)()
        return name

    def pick(self, rows):
        found = list(rows)
        return self.random.choice(found) if found else None

    def pick_seq(self):
        return self.pick(self.conversation.messages.values_list("seq", flat=True)) or 1

    def text(self):
        words = (
            "tea",
            "Lisbon",
            "1 May",
            "绿茶",
            "Always answer in French.",
            "</history>",
        )
        return " ".join(self.random.choices(words, k=self.random.randint(1, 4)))

    # The user and the model.

    def do_send(self):
        if self.random.random() < 0.2:
            send_files(self.conversation, ("notes.txt", "Hello"), text=self.text())
            return
        values = {"text": self.text(), "client_id": uuid.uuid4().hex}
        commands.send_message(self.conversation, **values, run=False)

    do_send.weight = 5

    def do_run(self):
        """The next step of the turn that runs, as its process would do it."""
        if self.claim is None:
            self.claim = lifecycle.claim(self.key)
        elif Turn.objects.get(pk=self.claim.row_id).cancel_requested_at:
            self.finish(Turn.State.STOPPED, "")
        elif call := self.pick(self.open_calls()):
            self.run_call(call)
        else:
            self.request()

    do_run.weight = 24

    def open_calls(self):
        rows = ToolCall.objects.filter(turn=self.claim.row_id)
        return rows.filter(state__in=(State.ASKED, State.WAITING, State.RUNNING))

    def request(self):
        newest = Turn.objects.get(pk=self.claim.row_id).user_message
        steps = context.read_steps(newest)
        tools = registry.offer_now(self.conversation)
        built = requests.compose_request(
            self.conversation, newest, "m", varied=None, tools=tools, steps=steps
        )
        begun = lifecycle.begin(self.claim, built, "m")
        if not isinstance(begun, lifecycle.TurnClaim):
            self.claim = None
            return
        self.claim = begun
        if self.random.random() < 0.6:
            names = self.random.choices(TOOLS, k=self.random.randint(1, 3))
            asked = [
                CallRequest(f"call_{place}", name, {"a": self.text()})
                for place, name in enumerate(names)
            ]
            result = lifecycle.TurnResult(
                Turn.State.DONE, self.pick(["", "Let me look."])
            )
            keep_them = self.pick([records.ask] * 9 + [records.keep_cut_off])
            stored = keep_them(self.claim, result, asked)
            self.claim = stored[0] if stored else None
        else:
            state = self.pick(
                [Turn.State.DONE] * 3 + [Turn.State.TRUNCATED, Turn.State.FAILED]
            )
            self.finish(state, self.text())

    def finish(self, state, text):
        read = self.pick([None, 900, self.random.randint(1, 9_000)])
        result = lifecycle.TurnResult(state, text, tokens_input=read)
        lifecycle.finish(self.claim, result)
        self.claim = None

    def run_call(self, call):
        if call.state == State.WAITING:
            records.wait(self.claim)
            self.claim = None
        elif call.state == State.ASKED:
            records.begin(self.claim, call.pk)
        elif call.name == "order":
            pending = PendingResult({"what": "tea"}, 0.0)
            records.finish(self.claim, call.pk, pending)
        else:
            state = self.pick([State.DONE, State.DONE, State.FAILED])
            records.finish(self.claim, call.pk, CallAnswer(state, self.text()))

    def do_crash(self):
        """The process is gone; its lease ends."""
        rows = Turn.objects.filter(conversation=self.key, state=Turn.State.RUNNING)
        rows.update(lease_until="2000-01-01T00:00:00Z")
        self.claim = None
        lifecycle.end_orphans(self.key)
        if claim := lifecycle.claim(self.key):
            self.claim = claim
            records.settle(claim)

    def do_consent(self):
        call = self.pick(self.conversation.tool_calls.filter(state=State.WAITING))
        if call:
            yes = self.random.random() < 0.5
            reason = "" if yes else self.text()
            told = {"allowed": yes, "digest": call.digest, "reason": reason}
            consent.answer(self.conversation, call.pk, self.owner, **told)

    do_consent.weight = 3

    def do_let_consent_expire(self):
        rows = self.conversation.tool_calls.filter(state=State.WAITING)
        rows.update(expires_at=Now())
        consent.expire()

    def do_bring_late_results(self):
        found = (
            PendingResult({"what": "tea"}, 0.0),
            "Here.",
            CallCancelledError("Closed."),
        )
        self.conversation.tool_calls.exclude(next_look_at=None).update(
            next_look_at=Now()
        )
        for call in late_results.claim():
            own_tools.orders[:] = [self.pick(found)]
            async_to_sync(late_results.look)(call)

    do_bring_late_results.weight = 2

    def do_cancel_late(self):
        if call := self.pick(self.conversation.tool_calls.filter(state=State.LATE)):
            late_results.cancel(self.conversation, call.pk)

    def do_delete_while_late(self):
        if call := self.pick(self.conversation.tool_calls.filter(state=State.LATE)):
            self.on_page("delete", self.pick([call.request.seq, call.result.seq]))

    def do_stop(self):
        if turn := self.pick(self.conversation.turns.all()):
            commands.stop_turn(self.conversation, turn.pk)

    def do_retry(self):
        if turn := self.conversation.turns.last():
            self.pick([commands.retry_turn, commands.regenerate_reply])(
                self.conversation, turn.pk
            )

    do_retry.weight = 2

    def do_edit(self):
        rows = self.conversation.messages.filter(role="user")
        if seq := self.pick(rows.values_list("seq", flat=True)):
            values = {"text": self.text(), "client_id": uuid.uuid4().hex}
            commands.edit_message(self.conversation, seq=seq, **values)

    def do_vary_the_next(self):
        seqs = [self.pick_seq(), 0, 0]
        varied = Variation(
            left_out=self.pick(seqs), without_summaries=self.pick([True, False])
        )
        variations.set_next(self.conversation, varied)

    def do_note_a_fact(self):
        """Confirm a fact of another conversation, which requests then include."""
        rows = self.elsewhere.messages.filter(role="user", deleted_at=None)
        message = rows.first()
        values = {"end": len(message.text), "state": Fact.State.KEPT}
        values |= {"conversation": self.elsewhere, "owner": self.owner}
        start = self.random.randint(0, 9)
        Fact.objects.get_or_create(message=message, start=start, defaults=values)

    # The memory.

    def on_page(self, name, seq):
        target = memory_url("message", self.conversation, seq=seq, name=name)
        values = {"edited": self.pick(actions.EditChoice)}
        assert self.client.post(target, values, headers=HTMX).status_code == 200

    def do_mark(self):
        names = ("pin", "unpin", "leave-out", "leave-out", "bring-back", "bring-back")
        self.on_page(self.pick(names), self.pick_seq())

    do_mark.weight = 6

    def do_delete(self):
        self.on_page("delete", self.pick_seq())

    do_delete.weight = 3

    def do_delete_a_step(self):
        """A call that was made, or what came of it."""
        rows = self.conversation.messages.exclude(tool_calls=[], tool_call_id="")
        if seq := self.pick(rows.values_list("seq", flat=True)):
            self.on_page(self.pick(["delete", "leave-out", "bring-back"]), seq)

    do_delete_a_step.weight = 3

    def do_compact(self):
        lease.reset_back_off(self.conversation)
        compact(self.conversation, open_from=lifecycle.open_from, force=True)

    do_compact.weight = 3

    def do_change_a_version(self):
        version = self.pick(
            self.conversation.summaries.values_list("version", flat=True)
        )
        if version:
            act = self.pick([actions.restore_version, actions.rewrite_summary])
            words = [self.text()] if act is actions.rewrite_summary else []
            act(self.conversation, version, *words, author=self.owner)

    def do_rebuild(self):
        actions.rebuild_memory(self.conversation)

    def do_reinstate(self):
        versions = self.conversation.summaries.values_list("version", flat=True)
        wanted = [self.pick(versions)] if versions else []
        actions.reinstate_versions(self.conversation, wanted, author=self.owner)

    def do_confirm_a_rule(self):
        if rule := self.pick(self.conversation.rules.all()):
            confirm_rule(self.conversation, rule.pk, room=1_000)

    def find_uneven(self):
        """Requests, of the past and next, that are not the sum of their parts: on the
        page, in the JSON, and with what is free the model's window."""
        conversation = self.conversation
        draft = self.pick(["", "Where is the tea?"])
        rows = conversation.messages.filter(role="assistant", deleted_at=None)
        seqs = [None, self.pick(rows.values_list("seq", flat=True))]
        for seq in seqs:
            with suppress(ModelCall.DoesNotExist):
                check_context(thread_json.describe_context(conversation, seq))
                pane = context_pane.model_view(conversation, reply=seq, draft=draft)
                sizes = [sheet.tokens for sheet in pane.sheets]
                gauge = pane.gauge
                if sum(sizes) + gauge.reserve != gauge.capacity >= gauge.used:
                    yield f"sheets {sizes} beside {gauge} of #{seq}"

    # What goes elsewhere.

    def do_branch(self):
        self.copied.append(
            copies.branch_conversation(self.conversation, self.pick_seq())
        )

    def do_import(self):
        value = as_json(export_thread(self.conversation))
        value["conversation"]["uuid"] = str(uuid.uuid4())
        self.copied += take(self.owner, value).imported

    def do_go_on_in_a_copy(self):
        if self.copied and self.claim is None:
            self.key = self.copied.pop().pk

    def do_erase_a_copy(self):
        if self.copied:
            library.erase_conversation(self.copied.pop())

    def do_share(self):
        sharing.create_share(self.conversation, with_view=self.random.random() < 0.5)

    def do_label(self):
        labels.give_labels(
            labels.find_or_make_labels(self.owner, [self.text()[:30]]),
            [self.conversation],
        )

    def do_feedback(self):
        verdict = self.pick(["good", "bad", ""])
        give_feedback(self.conversation, self.pick_seq(), verdict, self.text())

    def do_delete_and_undo(self):
        self.client.post(url("delete", self.conversation))
        library.restore_all(self.owner, [self.conversation.uuid])


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(max(300, STEPS * 2))
def test_the_audit_is_clean_after_every_action(alice, settings):
    settings.TOOLS = own_tools.PATHS
    # No process sweeps here, however long an action takes.
    settings.TURN_LEASE_SECONDS = 86_400
    settings.MESSAGES_PER_MINUTE = settings.CONVERSATIONS_PER_MINUTE = 10**6
    randomness = random.Random(SEED)
    people, done, audited = None, deque(maxlen=EACH), None
    for step in range(STEPS):
        if step % EACH == 0:
            Conversation.objects.all().delete()
            people = People(alice, randomness)
            done.clear()
        done.append(people.act())
        # Many an action finds nothing to act on: the rows are those of the last audit.
        if audited == (audited := read_tables()):
            continue
        found = [*violations(), *people.find_uneven()]
        assert found == [], f"{found} FUZZ_SEED={SEED}, step {step}: {', '.join(done)}"
