"""Evidence after whatever people, models, tools and crashes do, in whatever order."""

import random

import pytest

from chatsite.contrib.evidence import proven_request
from chatsite.pages.presenters import context_pane
from memory.models import Conversation
from tests.fakes import own_tools

from ...test_random_actions import SEED, People
from .test_schema import VALIDATOR

STEPS, EACH = 180, 60
KNOWN = {"", proven_request.ERASED}


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
    settings.EVIDENCE_PER_MINUTE = 0
    settings.MESSAGES_PER_MINUTE = settings.CONVERSATIONS_PER_MINUTE = 10**6
    randomness, done, seen = random.Random(SEED + 1), [], set()
    for step in range(STEPS):
        if step % EACH == 0:
            Conversation.objects.all().delete()
            people = People(alice, randomness)
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
