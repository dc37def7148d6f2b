"""Experiments over a sample: what is drawn, asked, played, compared and refused."""

import csv
import io
import re

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse
from django.utils import timezone

from chatsite.contrib.lab.experiments import job, store
from chatsite.contrib.lab.experiments.models import Experiment, Sample
from chatsite.contrib.lab.experiments.samples import drawing, results, services
from chatsite.review.models import AccessEvent
from chatsite.turns.models import Allowance
from memory import library, transcript
from memory.models import Conversation
from tests.memory.scenes import say

pytestmark = pytest.mark.django_db(transaction=True)
ADD = "admin:experiments_sample_add"
FACT = "The order A-77{n:02} of SECRET Berlin costs {n}50 euros. "
LANGGRAPH = {"preset": "langgraph"}
FIELDS = {
    **{"number": "3", "seed": "7", "least": "2", "days": "", "preset": "", "model": ""},
    **{"form-TOTAL_FORMS": "4", "form-INITIAL_FORMS": "0"},
    **{f"form-{n}-{name}": "" for n in range(4) for name in ("preset", "overrides")},
    "form-0-preset": "langgraph",
}
DRAWN = {"seed": 7, "least": 2, "preset": "", "model": "", "days": None}


@pytest.fixture(autouse=True)
def fast(settings):
    settings.DEMO_TOKENS_PER_SECOND = 0


@pytest.fixture
def several(alice, bob):
    """Six conversations of two people, of which one is too short to be drawn."""
    made = []
    for n in range(6):
        row = transcript.create_conversation((alice, bob)[n % 2], title="SECRET")
        for place in range(7 if n else 1):
            say(row, FACT.format(n=place + n) * 3)
        made.append(Conversation.objects.get(pk=row.pk))
    return made


@pytest.fixture
def sample(several, staff):
    drawn = drawing.draw_conversations(**DRAWN | {"number": 2, "least": 6})
    return services.start_sample(
        staff.pk, drawn, [LANGGRAPH], seed=7, drawn_from={"least": 6}
    )


def play_all():
    while claim := store.claim():
        async_to_sync(job.run)(claim)


def text_of(response):
    return " ".join(response.content.decode().split())


def draw(**values):
    found = drawing.draw_conversations(**{"number": 3, **DRAWN, **values})
    return [each.conversation.pk for each in found]


class TestDrawing:
    def test_a_seed_draws_the_same_ones_again(self, several):
        assert draw() == draw()
        assert len({tuple(draw(seed=seed)) for seed in range(20)}) > 5

    def test_new_conversation_changes_one_draw_at_most(self, several, alice):
        before = draw(number=4)
        say(transcript.create_conversation(alice), "Hello")
        assert len({*before} - {*draw(number=4)}) <= 1

    def test_draw_applies_the_filters(self, several, alice):
        short, langgraph, old, named, gone = (each.pk for each in several[:5])
        rows = Conversation.objects.filter
        rows(pk=langgraph).update(policy=LANGGRAPH)
        rows(pk=old).update(updated_at=timezone.now() - timezone.timedelta(days=9))
        rows(pk=named).update(model="another")
        library.delete_conversation(Conversation.objects.get(pk=gone))
        kept = transcript.create_conversation(alice, temporary=True)
        say(kept, "For now")
        everything = {*draw(number=30)}
        assert everything == {each.pk for each in several} - {gone}
        assert {*draw(number=30, least=6)} == everything - {short}
        assert draw(number=30, preset="langgraph") == [langgraph]
        assert {*draw(number=30, preset="layered")} == everything - {langgraph}
        assert {*draw(number=30, days=5)} == everything - {old}
        assert draw(number=30, model="another") == [named]

    def test_sample_budget_covers_the_replays(self, sample):
        play_all()
        states = {*sample.experiments.values_list("state", flat=True)}
        assert states == {"done"}
        played = services.count_played(sample)
        assert 0 < played["spent"] < sample.budget


class TestPlaying:
    def test_each_is_played_twice_as_it_was_and_once_with_each_policy(
        self, sample, several
    ):
        rows = sample.experiments.order_by("pk").values_list("column", "policy")
        assert [*rows] == 2 * [(0, {}), (1, {}), (2, LANGGRAPH)]
        play_all()
        groups = results.group_whole(results.read_rows(sample), 3)
        assert len(groups) == 2
        for first, second, tried in groups:
            # The demo model writes the same each time.
            assert first == second
            assert tried.summariser > first.summariser

    def test_own_policy_is_never_better_than_itself(self, several, staff):
        Conversation.objects.update(policy=LANGGRAPH)
        drawn = drawing.draw_conversations(**DRAWN | {"number": 5, "least": 6})
        other = {"preset": "langgraph", "enabled": False}
        policies = [LANGGRAPH, other]
        made = services.start_sample(staff.pk, drawn, policies, seed=7, drawn_from={})
        play_all()
        groups = results.group_whole(results.read_rows(made), 4)
        assert len(groups) == 5
        table = dict(results.compare_policies(groups, 2))
        assert not any(cells[1].is_better for cells in table.values())
        assert table["Tokens of the summariser"][2].is_better
        assert table["Tokens of the summariser"][2].change == "-100%"

    def test_sample_leaves_room_for_other_experiments(self, sample, staff):
        assert store.full_at(staff.pk) == 0

    def test_cancelling_ends_all_of_it(self, sample):
        claim = store.claim()
        store.EXPERIMENTS.cancel_rows(sample.experiments.all())
        states = [*sample.experiments.order_by("pk").values_list("state", flat=True)]
        assert states == ["running", *5 * ["stopped"]]
        async_to_sync(job.run)(claim)
        assert not store.due().exists()
        assert services.count_played(sample)["going"] == 0

    def test_a_conversation_that_goes_is_in_no_row(self, sample):
        play_all()
        sample.experiments.first().conversation.delete()
        groups = results.group_whole(results.read_rows(sample), 3)
        assert len(groups) == 1


class TestPages:
    def estimate(self, client, **values):
        page = client.post(reverse(ADD), {**FIELDS, **values})
        found = re.search(r'name="agreed" value="(\d+)"', page.content.decode())
        return page, found and found[1]

    def test_page_estimates_and_asks_before_a_sample_starts(
        self, reviewer, several, staff
    ):
        assert 'name="agreed"' not in text_of(reviewer.get(reverse(ADD)))
        page, agreed = self.estimate(reviewer)
        assert "3 conversations are drawn" in text_of(page)
        assert "Each is replayed 3 times." in text_of(page)
        assert not Sample.objects.exists()
        started = reviewer.post(reverse(ADD), {**FIELDS, "agreed": agreed})
        made = Sample.objects.get()
        assert started["Location"].endswith(f"/{made.pk}/change/")
        assert (made.budget, made.seed, made.conversations) == (int(agreed), 7, 3)
        logged = AccessEvent.objects.filter(action="try")
        assert {*logged.values_list("conversation", flat=True)} == {
            *made.experiments.values_list("conversation__uuid", flat=True)
        }

    def test_page_asks_again_when_the_estimate_grew(self, reviewer, several):
        _page, agreed = self.estimate(reviewer)
        for each in several:
            say(each, "More")
        page = reviewer.post(reverse(ADD), {**FIELDS, "agreed": agreed})
        assert "At most" in text_of(page)
        assert not Sample.objects.exists()

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"number": "31"}, "less than or equal to 30"),
            ({"seed": "x"}, "whole number"),
            ({"least": "99999"}, "No conversation matches."),
            ({"form-0-preset": ""}, "Choose at least one policy to try."),
            ({"form-1-overrides": '{"keep": ["turns", 2]}'}, "Choose a preset"),
            ({"form-0-overrides": '{"colour": "red"}'}, "colour"),
            ({"form-0-overrides": "{broken"}, "valid JSON"),
            ({"form-TOTAL_FORMS": "5000"}, "Choose at most"),
        ],
    )
    def test_form_explains_errors(self, reviewer, several, values, words):
        page, agreed = self.estimate(reviewer, **values)
        assert agreed is None
        if "TOTAL_FORMS" not in str(values):
            assert words in text_of(page)
        assert not Sample.objects.exists()

    def test_user_runs_one_sample_within_the_limits(
        self, reviewer, sample, staff, settings, bob
    ):
        drawn = drawing.draw_conversations(**DRAWN | {"number": 2})
        Sample.objects.update(user=bob)
        assert "Your last one" in services.find_sample_refusal(bob.pk, drawn)
        assert services.find_sample_refusal(staff.pk, drawn) == ""
        settings.EXPERIMENTS_AT_ONCE = 0
        assert "switched off" in services.find_sample_refusal(staff.pk, drawn)
        settings.EXPERIMENTS_AT_ONCE, settings.TOKENS_PER_DAY = 2, 100
        values = {"day": timezone.localdate(), "tokens_used": 1_000_000}
        Allowance.objects.update_or_create(user=staff, defaults=values)
        assert "used up" in services.find_sample_refusal(staff.pk, drawn)

    def test_sample_with_too_many_messages_is_refused(
        self, several, staff, monkeypatch
    ):
        monkeypatch.setattr(services, "MAX_MESSAGES", 20)
        drawn = drawing.draw_conversations(**DRAWN | {"number": 2, "least": 6})
        assert "more than 20 messages" in services.find_sample_refusal(staff.pk, drawn)

    def test_the_table_and_the_file_have_the_numbers(self, client, staff_with, sample):
        play_all()
        client.force_login(staff_with("metadata", "export"))
        address = reverse("admin:experiments_sample_change", args=[sample.pk])
        page = text_of(client.get(address))
        assert "Means over 2 of 2 conversations" in page
        assert "1. LangGraph" in page or "1. langgraph" in page.lower()
        assert "SECRET" not in page
        file = client.get(reverse("admin:experiments_sample_csv", args=[sample.pk]))
        lines = [*csv.DictReader(io.StringIO(file.content.decode("utf-8-sig")))]
        assert [line["policy"] for line in lines] == 2 * [
            *("as it was, replayed", "as it was, replayed again", "langgraph")
        ]
        assert all(int(line["cost"]) > 0 for line in lines)
        spent = sum(int(line["tokens_spent"]) for line in lines)
        assert spent == services.count_played(sample)["spent"]

    def test_progress_is_shown_until_the_end(self, reviewer, sample):
        address = reverse("admin:experiments_sample_progress", args=[sample.pk])
        assert "0 of 84 messages" in text_of(reviewer.get(address))
        page = reviewer.get(
            reverse("admin:experiments_sample_change", args=[sample.pk])
        )
        assert 'hx-trigger="every 2s"' in text_of(page)
        reviewer.post(reverse("admin:experiments_sample_cancel", args=[sample.pk]))
        assert reviewer.get(address)["HX-Refresh"] == "true"

    def test_staff_without_content_right_cannot_start_or_cancel(
        self, client, staff_with, sample
    ):
        client.force_login(staff_with("metadata", "export", "purge"))
        assert client.post(reverse(ADD), FIELDS).status_code == 403
        cancel = reverse("admin:experiments_sample_cancel", args=[sample.pk])
        assert client.post(cancel).status_code == 403
        client.force_login(staff_with("metadata"))
        file = reverse("admin:experiments_sample_csv", args=[sample.pk])
        assert client.get(file).status_code == 403

    def test_a_sample_has_few_statements(
        self, reviewer, sample, django_assert_max_num_queries
    ):
        play_all()
        address = reverse("admin:experiments_sample_change", args=[sample.pk])
        with django_assert_max_num_queries(14):
            reviewer.get(address)

    def test_lists_of_conversations_omit_experiments_of_samples(self, reviewer, sample):
        row = sample.experiments.first()
        page = reviewer.get(reverse("experiments", args=[row.conversation_id]))
        assert f"Experiment {row.pk}" not in page.content.decode()
        assert Experiment.objects.count() == 6
