"""Whatever people, models and crashes do in whatever order: nothing gets lost.

Every run takes other steps; MEMORY_STEPS takes more of them.
"""

import json
import os
from contextlib import suppress

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from django.contrib.auth import get_user_model
from django.db import connection
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory import actions, context, transcript, versions
from memory.compaction import compactor, lease, proposals
from memory.integrity import audit
from memory.models import Conversation, ModelCall
from memory.search import recall
from memory.view import rebuilding
from memory.view.places import count_places

from .scenes import Recorder, record

# Some five conversations of forty steps, others in each run; on PostgreSQL, where only
# the SQL is another, half of it.
STEPS = {"sqlite": 200, "postgresql": 80}
FAILURES = (
    "",
    "I'm sorry, I can't help.",
    "long " * 3000,
    compactor.InvokeError("timeout"),
)
FULL_AUDIT = 10
BROKEN_MEMORY = (audit.find_broken_tiling, audit.find_bad_index)
POLICIES = (
    {"preset": "langgraph"},
    {"preset": "langgraph", "recall_tokens": 0},
    {"preset": "guide", "trigger": ["turns", 3], "keep": ["turns", 2]},
    {"trigger": ["tokens", 60], "keep": ["tokens", 20], "summary_budget": 30},
    {"trigger": ["tokens", 60], "keep": ["tokens", 20], "fan_in": 2},
    {"preset": "langchain", "trigger": ["messages", 5], "keep": ["messages", 2]},
    {"strategy": "window", "trigger": ["messages", 5], "keep": ["messages", 2]},
    {"enabled": False},
)
WORDS = ("tea", "Lisbon", "puppy", "1 May", "绿茶", "<b>", "</history>")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
places = st.floats(0, 1)
policies = st.sampled_from(POLICIES)


class Memory(RuleBasedStateMachine):
    """One conversation, changed in every way the services allow."""

    steps = 0

    @initialize(policy=policies)
    def start(self, policy):
        owner = get_user_model().objects.get(username="alice")
        self.conversation = transcript.create_conversation(owner, policy=policy)
        self.owner, self.open, self.read, self.sent = owner, None, set(), 0
        self.views = [[]]

    def teardown(self):
        assert [str(each) for each in audit.check_memory(hashes=False)] == []
        calls = ModelCall.objects.filter(message__isnull=False)
        assert all(
            rebuilding.verify_context(call) or rebuilding.is_erased(call)
            for call in calls
        )
        self.conversation.delete()

    # People and models.

    @precondition(lambda self: self.open is None)
    @rule(text=texts)
    def ask(self, text):
        self.sent += 1
        self.open, is_new = transcript.append_user_message(
            self.conversation, text=text, client_id=f"c{self.sent}"
        )
        assert is_new

    @precondition(lambda self: self.open is not None)
    @rule(text=texts)
    def answer(self, text):
        built = context.build_request_context(
            self.conversation, newest=self.open, model="m"
        )
        assert built.wire[-1] == {"role": "user", "content": self.open.text}
        reply = transcript.append_reply(
            self.conversation, seq=self.open.seq + 1, text=text
        )
        record(self.conversation, built, reply)
        self.open = None

    @rule(text=texts, reply=texts)
    def talk(self, text, reply):
        if self.open is None:
            self.ask(text)
        self.answer(reply)

    @precondition(lambda self: self.sent)
    @rule()
    def send_again(self):
        known = self.conversation.messages.filter(client_id=f"c{self.sent}").get()
        if not known.deleted_at:
            again, is_new = transcript.append_user_message(
                self.conversation, text=known.text, client_id=known.client_id
            )
            assert (again, is_new) == (known, False)

    # Compaction.

    def compact(self, answer, *, force=False):
        recorder = Recorder(*[answer] * 50)
        lease.reset_back_off(self.conversation)
        outcome = async_to_sync(compactor.compact_conversation)(
            self.conversation.pk,
            compactor.Summariser("m", recorder),
            open_from=self.open_from,
            force=force,
        )
        self.note_read(recorder)
        return outcome

    def open_from(self, conversation):
        return self.open.seq if self.open else None

    def note_read(self, recorder):
        for request in recorder.requests:
            document = json.loads(request[-1].content)
            self.read |= {each["n"] for each in document.get("messages", [])}

    @rule(force=st.booleans())
    def compact_well(self, force):
        assert self.compact("They talked.", force=force).state in ("folded", "nothing")

    @rule(answer=st.sampled_from(FAILURES))
    def compact_in_vain(self, answer):
        if self.conversation.get_policy().strategy == "window":
            return  # asks no model
        before = context.build_request_context(self.conversation).wire
        assert self.compact(answer, force=True).state in ("failed", "nothing")
        assert context.build_request_context(self.conversation).wire == before

    @precondition(lambda self: self.seqs())
    @rule(place=places)
    def compact_too_late(self, place):
        seq = self.pick(place)

        async def changed_meanwhile():
            await database_sync_to_async(self.try_to)(
                actions.exclude_messages, self.conversation, [seq]
            )
            return "They talked."

        self.compact(changed_meanwhile, force=True)

    @precondition(lambda self: self.seqs())
    @rule(place=places, between=st.booleans(), text=texts)
    def compact_by_hand(self, place, between, text):
        recorder = Recorder("They talked.")
        with suppress(actions.ActionError):
            proposal = async_to_sync(proposals.propose_summary)(
                self.conversation,
                self.pick(place),
                compactor.Summariser("m", recorder),
                open_from=self.open_from,
            )
            self.note_read(recorder)
            if between:
                self.leave_out(place=place, act=actions.exclude_messages, more=0)
            proposals.accept_proposal(
                self.conversation,
                proposal.signature,
                text,
                author=self.owner,
                open_from=self.open_from,
            )

    # What people do to the view.

    def seqs(self):
        rows = self.conversation.messages.order_by("seq")
        if self.open:
            rows = rows.filter(seq__lt=self.open.seq)
        return list(rows.values_list("seq", flat=True))

    def pick(self, place):
        seqs = self.seqs()
        return seqs[min(int(place * len(seqs)), len(seqs) - 1)]

    def try_to(self, act, *args, **kwargs):
        with suppress(actions.ActionError):
            act(*args, **kwargs)

    @precondition(lambda self: self.seqs())
    @rule(
        place=places,
        act=st.sampled_from([actions.exclude_messages, actions.include_messages]),
        more=st.integers(0, 3),
    )
    def leave_out(self, place, act, more):
        first = self.pick(place)
        self.try_to(act, self.conversation, range(first, first + more + 1))

    @precondition(lambda self: self.seqs())
    @rule(
        place=places,
        act=st.sampled_from(
            [actions.pin_message, actions.unpin_message, actions.delete_message]
        ),
    )
    def mark(self, place, act):
        self.try_to(act, self.conversation, self.pick(place))

    @precondition(lambda self: self.open is None and self.seqs())
    @rule(place=places, text=texts)
    def edit(self, place, text):
        rows = self.conversation.messages.filter(seq__gte=self.pick(place), role="user")
        if row := rows.order_by("seq").first():
            transcript.supersede_messages(self.conversation, row.seq)
            self.ask(text)

    @precondition(lambda self: self.seqs())
    @rule(place=places)
    def regenerate(self, place):
        seq = self.pick(place)
        transcript.supersede_messages(self.conversation, seq, seq)

    @rule(place=places)
    def restore_a_version(self, place):
        newest = self.conversation.summaries.count()
        version = int(place * newest) + 1
        self.try_to(
            actions.restore_version, self.conversation, version, author=self.owner
        )

    @rule(place=places, text=texts)
    def rewrite_a_version(self, place, text):
        newest = self.conversation.summaries.count()
        version = int(place * newest) + 1
        self.try_to(
            actions.rewrite_summary, self.conversation, version, text, author=self.owner
        )
        if made := self.conversation.summaries.filter(version=newest + 1).first():
            # A user is responsible for a summary of messages that were trimmed.
            self.read.update(range(made.first_seq, made.last_seq + 1))

    @rule(place=places)
    def undo(self, place):
        view = self.views[min(int(place * len(self.views)), len(self.views) - 1)]
        self.try_to(
            actions.reinstate_versions, self.conversation, view, author=self.owner
        )

    @rule()
    def rebuild_all(self):
        actions.rebuild_memory(self.conversation)

    @rule(policy=policies)
    def change_policy(self, policy):
        actions.set_policy(self.conversation, policy)

    # What always holds.

    @invariant()
    def nothing_is_lost_and_what_is_summarised_was_read(self):
        type(self).steps += 1
        self.conversation = Conversation.objects.get(pk=self.conversation.pk)
        # The whole list takes twenty queries; what it finds does not go away again.
        finders = BROKEN_MEMORY if self.steps % FULL_AUDIT else audit.FINDERS
        assert [str(each) for find in finders for each in find()] == []
        counts = count_places(self.conversation)
        assert "lost" not in counts
        assert sum(counts.values()) == self.conversation.messages.count()
        active = versions.active_summaries(self.conversation)
        # What is in force tiles the messages up to its end, which is checked above.
        summarised = {
            seq
            for row in active
            if not row.is_trimmed
            for seq in range(row.first_seq, row.last_seq + 1)
        }
        seen = context.visible_messages(self.conversation).values_list("seq", flat=True)
        assert self.read.issuperset(summarised.intersection(seen))
        view = [row.version for row in active]
        if view != self.views[-1]:
            self.views.append(view)

    @precondition(lambda self: self.steps % FULL_AUDIT == 0)
    @invariant()
    def what_was_taken_out_is_not_recalled(self):
        seen = set(
            context.visible_messages(self.conversation).values_list("seq", flat=True)
        )
        hits = recall.recall_messages(self.conversation, " ".join(WORDS), limit=100)
        assert seen.issuperset(hit.seq for hit in hits)


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(300)
def test_messages_are_never_lost_whatever_the_steps(alice):
    Memory.steps = 0
    wanted = int(os.environ.get("MEMORY_STEPS", STEPS[connection.vendor]))
    while Memory.steps < wanted:
        run_state_machine_as_test(
            Memory,
            settings=settings(
                max_examples=5,
                stateful_step_count=40,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
