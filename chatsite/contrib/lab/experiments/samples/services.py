"""Samples in the database: starting, cancelling and counting their progress."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, Sum
from django.utils.translation import gettext as _

from memory.models import Conversation

from .. import store
from ..models import Experiment, Sample
from .drawing import MAX_MESSAGES, REPLAYS, Drawn, sum_budgets

# Maximum of unfinished samples: per user, and in all.
OWN_AT_ONCE, AT_ONCE = 1, 3
UNFINISHED = Q(state__in=Experiment.UNFINISHED)


def find_sample_refusal(user_id: int, drawn: Sequence[Drawn]) -> str:
    """Return the reason why no sample can be started, or ""."""
    if refusal := store.find_refusal(user_id):
        return refusal
    if not drawn:
        return _("No conversation matches.")
    if sum(each.messages for each in drawn) > MAX_MESSAGES:
        return _(
            "These conversations have more than %(most)s messages together. Draw fewer."
        ) % {"most": MAX_MESSAGES}
    rows = Experiment.objects.filter(UNFINISHED, sample__isnull=False)
    going = Sample.objects.filter(pk__in=rows.order_by().values("sample"))
    if going.filter(user=user_id).count() >= OWN_AT_ONCE:
        return _("Your last one is not finished. Wait for it, or cancel it.")
    if going.count() >= AT_ONCE:
        return _("Other experiments over samples are running. Try again when one ends.")
    return ""


@transaction.atomic
def start_sample(
    user_id: int,
    drawn: Sequence[Drawn],
    policies: Sequence[dict[str, Any]],
    *,
    seed: int,
    drawn_from: dict[str, Any],
) -> Sample:
    """Create a sample, and queue its experiments conversation by conversation.

    This order lets a sample that is stopped still compare some conversations.
    """
    sample = Sample.objects.create(
        user_id=user_id,
        seed=seed,
        drawn_from=drawn_from,
        policies=list(policies),
        conversations=len(drawn),
        budget=sum_budgets(drawn, len(policies)),
    )
    Experiment.objects.bulk_create(
        each.make_experiment(user_id, policy, each.budget, sample=sample, column=column)
        for each in drawn
        for column, policy in enumerate(
            [*REPLAYS * [_own_policy(each.conversation)], *policies]
        )
    )
    return sample


def _own_policy(conversation: Conversation) -> dict[str, Any]:
    """Return the conversation's policy, or the default if it is invalid."""
    return {} if conversation.policy_error else conversation.policy


def count_played(sample: Sample) -> dict[str, int]:
    """Count the experiments, messages and tokens, in all and so far."""
    return sample.experiments.aggregate(
        experiments=Count("pk"),
        going=Count("pk", filter=UNFINISHED),
        cancelled=Count("pk", filter=UNFINISHED & ~Q(cancel_requested_at=None)),
        messages=Sum("all_messages", default=0),
        played=Sum("done_messages", default=0),
        spent=Sum("spent", default=0),
    )
