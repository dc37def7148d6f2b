"""Evidence after whatever people, models, tools and crashes do, in whatever order."""

import random

import pytest
from asgiref.sync import async_to_sync

from chatsite.contrib.endpoint import keys
from chatsite.contrib.evidence import proven_request
from chatsite.contrib.lab.trials import job, services, store
from chatsite.pages.presenters import context_pane
from memory import actions
from memory.models import Conversation
from tests.fakes import own_tools
from tests.fakes.held_threads import HeldState

from ...test_random_actions import SEED, People
from ..endpoint.asgi_client import send
from ..endpoint.test_held_state import Thread
from .test_schema import VALIDATOR

STEPS, EACH = 180, 60
CLIENT_STEPS, CHECKED_EACH = 40, 10
KNOWN = {"", proven_request.ERASED}


class Triers(People):
    """People who also ask again, and take such an answer for the reply."""

    def do_ask_again(self):
        replies = self.conversation.messages.filter(role="assistant", deleted_at=None)
        seq = self.pick(replies.values_list("seq", flat=True)) or 1
        services.ask_again(self.conversation, seq)
        async_to_sync(job.run_trial)(store.claim_trial())
        trial = self.conversation.trials.latest("pk")
        self.states.append(trial.state)
        if self.claim is None:
            self.key = services.make_reply(self.conversation, trial).pk
            self.states.append("used")

    do_ask_again.weight = 4


def find_wrong(evidence, conversation, reply):
    """Return the errors of a file."""
    is_right, text = evidence.check()
    if not is_right:
        yield text
    yield from (error.message for error in VALIDATOR.iter_errors(evidence.file))
    rows = conversation.messages.order_by("seq")
    if reply:
        rows = rows.filter(seq__lte=reply)
    numbers = [*rows.values_list("seq", flat=True)]
    if [*evidence.places] != numbers:
        yield f"{evidence.places} for {numbers}"
    total = len(numbers) - bool(reply)
    if f"{total} of {total} messages accounted for" not in text:
        yield text
    pane = context_pane.model_view(conversation, reply=reply)
    if (pane.counts.read, pane.total) != (
        evidence.own["account"].get("sent", 0),
        total,
    ):
        yield f"the pane says: {pane.account}"
    if evidence.own["request"]["missing"] not in KNOWN:
        yield evidence.own["request"]["missing"]
    erased = rows.exclude(deleted_at=None).values_list("seq", flat=True)
    if {seq for seq, place in evidence.places.items() if place == "erased"} - {*erased}:
        yield "a message is called erased"


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(600)
def test_account_sums_up_after_every_action(alice, settings, download):
    settings.TOOLS = own_tools.PATHS
    settings.TURN_LEASE_SECONDS = 86_400
    settings.DEMO_TOKENS_PER_SECOND = 0
    settings.EVIDENCE_PER_MINUTE = 0
    settings.MESSAGES_PER_MINUTE = settings.CONVERSATIONS_PER_MINUTE = 10**6
    randomness, done, seen = random.Random(SEED + 1), [], set()
    Triers.states = states = []
    for step in range(STEPS):
        if step % EACH == 0:
            Conversation.objects.all().delete()
            people = Triers(alice, randomness)
            done.clear()
        done.append(people.act())
        conversation = people.conversation
        replies = conversation.model_calls.filter(
            purpose="reply", message__deleted_at=None, message__isnull=False
        ).values_list("message__seq", flat=True)
        for reply in (None, people.pick(replies)):
            evidence = download(conversation, f"?reply={reply}" if reply else "")
            seen.update(evidence.places.values())
            found = [*find_wrong(evidence, conversation, reply)]
            assert found == [], f"FUZZ_SEED={SEED}, step {step}: {', '.join(done)}"
    assert {"sent", "summary", "owner", "erased", "reply"} <= seen
    assert {"done", "used"} <= {*states}


class Client:
    """A program of a user: threads that the provider holds, and whole histories."""

    def __init__(self, key, held, randomness):
        self.key, self.held, self.random = key, held, randomness
        self.threads, self.said, self.count = [Thread(key)], [], 0

    def act(self):
        names = [name for name in dir(self) if name.startswith("do_")]
        name = self.random.choice(names)
        getattr(self, name)()
        return name

    def write_text(self):
        self.count += 1
        return f"Question {self.count}?"

    def do_continue_thread(self):
        thread = self.random.choice(self.threads)
        async_to_sync(thread.send)(self.write_text())

    def do_fork_thread(self):
        self.threads.append(self.random.choice(self.threads).fork())

    def do_forget_threads(self):
        self.held.forget_all()

    def do_send_history(self):
        self.said.append({"role": "user", "content": self.write_text()})
        send(self.key, *self.said)
        self.said.append({"role": "assistant", "content": "An answer."})

    def do_edit_history(self):
        if self.said:
            del self.said[self.random.randrange(0, len(self.said), 2) :]
        self.do_send_history()

    def do_delete_message(self):
        rows = Conversation.objects.filter(messages__deleted_at=None).distinct()
        if found := [*rows]:
            conversation = self.random.choice(found)
            numbers = conversation.messages.filter(deleted_at=None)
            seq = self.random.choice([*numbers.values_list("seq", flat=True)])
            actions.delete_message(conversation, seq)


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(600)
def test_account_sums_up_for_requests_of_clients(alice, upstream, settings, download):
    settings.ANTHROPIC_BASE_URL = upstream.url.removesuffix("/v1")
    settings.ANTHROPIC_API_KEY = "sk-ant-SECRET"
    settings.EVIDENCE_PER_MINUTE = settings.MESSAGES_PER_MINUTE = 0
    upstream.held = HeldState()
    randomness, done, seen = random.Random(SEED + 2), [], set()
    client = Client(keys.create_api_key(alice, "Script")[1], upstream.held, randomness)
    while len(done) < CLIENT_STEPS:
        done += [client.act() for _ in range(CHECKED_EACH)]
        for conversation in Conversation.objects.all():
            evidence = download(conversation)
            seen.update(evidence.places.values())
            reply = evidence.own["reply"]
            found = [*find_wrong(evidence, conversation, reply)]
            assert found == [], f"FUZZ_SEED={SEED}: {', '.join(done)}"
    assert {"sent", "held", "erased", "reply"} <= seen
    assert Conversation.objects.count() > 2
