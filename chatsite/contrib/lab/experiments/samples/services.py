"""Samples in the database: started, cancelled, how far they are, what came out."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from memory.models import Conversation

from .. import store
from ..models import Experiment, Sample
from .drawing import MAX_MESSAGES, REPLAYS, Drawn, sum_budgets

# Samples that are played or wait: of one person, and of all.
OWN_AT_ONCE, AT_ONCE = 1, 3
UNFINISHED = Q(state__in=Experiment.UNFINISHED)


def find_sample_refusal(user_id: int, drawn: Sequence[Drawn]) -> str:
    """Why no sample can be started; "": it can."""
    if refusal := store.find_refusal(user_id):
        return refusal
    if not drawn:
        return _("No conversation matches.")
    if sum(each.messages for each in drawn) > MAX_MESSAGES:
        return _(
            "These conversations have more than %(most)s messages together. Draw fewer."
        ) % {"most": MAX_MESSAGES}
    going = Sample.objects.filter(pk__in=_list_going())
    if going.filter(user=user_id).count() >= OWN_AT_ONCE:
        return _("Your last one is not finished. Wait for it, or cancel it.")
    if going.count() >= AT_ONCE:
        return _("Others of these experiments are running. Try again when one ends.")
    return ""


def _list_going() -> QuerySet[Experiment, Any]:
    rows = Experiment.objects.filter(UNFINISHED, sample__isnull=False)
    return rows.order_by().values("sample")


@transaction.atomic
def start_sample(
    user_id: int,
    drawn: Sequence[Drawn],
    policies: Sequence[dict[str, Any]],
    *,
    seed: int,
    drawn_from: dict[str, Any],
) -> Sample:
    """All its experiments wait in the queue of the others: conversation by
    conversation, so that one that is stopped has compared some."""
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
    """One that is not valid is no policy: the default applies."""
    return {} if conversation.policy_error else conversation.policy


def cancel_sample(sample: Sample) -> None:
    """Those that wait end at once, those that are played as soon as they can."""
    store.EXPERIMENTS.cancel(sample.experiments.all())


def count_played(sample: Sample) -> dict[str, int]:
    """How far it is: experiments, messages and tokens."""
    return sample.experiments.aggregate(
        experiments=Count("pk"),
        going=Count("pk", filter=UNFINISHED),
        cancelled=Count("pk", filter=UNFINISHED & ~Q(cancel_requested_at=None)),
        messages=Sum("all_messages", default=0),
        played=Sum("done_messages", default=0),
        spent=Sum("spent", default=0),
    )
