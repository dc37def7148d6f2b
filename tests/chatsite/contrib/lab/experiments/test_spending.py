"""Experiments within the operator's budgets, and in the figures of the site."""

import html
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from chatsite.contrib.lab.experiments import job, store
from chatsite.contrib.lab.experiments.models import Experiment
from chatsite.review import site_figures
from chatsite.turns.models import Allowance

from ....scenes import signed_in, talk_in_turns

pytestmark = pytest.mark.django_db(transaction=True)
SENTENCE = "You have used up the 100 tokens for today. You get new ones in "
POLICY = {"preset": "langgraph"}


@pytest.fixture
def used_up(upstream, staff, settings):
    """Staff have no tokens left for today."""
    settings.TOKENS_PER_DAY = 100
    values = {"day": timezone.localdate(), "tokens_used": 1_000_000}
    Allowance.objects.create(user=staff, **values)
    return upstream


@pytest.fixture
def experiment(conversation, staff):
    talk_in_turns(conversation, *(f"Text {n}" for n in range(4)))
    return Experiment.objects.create(
        conversation=conversation,
        user=staff,
        policy=POLICY,
        model="ok",
        budget=100_000,
        last_seq=conversation.messages.count(),
    )


def test_experiment_is_refused_without_tokens(used_up, staff, conversation):
    path = reverse("experiments", args=[conversation.pk])
    fields = {**POLICY, "overrides": "", "budget": 50_000}
    page = signed_in(staff).post(path, fields).content.decode()
    assert SENTENCE in html.unescape(page)
    assert not Experiment.objects.exists()


def test_running_experiment_fails_without_tokens(experiment, used_up):
    async_to_sync(job.run)(store.claim())
    experiment.refresh_from_db()
    assert (experiment.state, experiment.error) == ("failed", "quota")
    assert used_up.calls == []


def test_experiment_counts_for_the_user_who_started_it(upstream, experiment, staff):
    owner = Allowance.objects.get(user=experiment.conversation.owner)
    async_to_sync(job.run)(store.claim())
    assert Allowance.objects.get(user=staff).tokens_used > 0
    used = owner.tokens_used
    owner.refresh_from_db()
    assert owner.tokens_used == used


def test_usage_of_the_day_includes_experiments(experiment):
    rows = QuerySet(Experiment).filter(pk=experiment.pk)
    before = read_today()
    rows.update(requests=2, tokens_in=50, tokens_out=5)
    today = read_today()
    assert today.requests - before.requests == 2
    assert (today.read - before.read, today.written - before.written) == (50, 5)
    rows.update(created_at=timezone.now() - timedelta(days=5))
    assert read_today() == before


def read_today():
    (today,) = site_figures.read_days(timezone.localdate(), 1).values()
    return today
