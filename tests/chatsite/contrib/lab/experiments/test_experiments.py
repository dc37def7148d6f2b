"""Policy experiments: what an experiment finds, what it leaves alone, how it ends."""

import asyncio
import hashlib
import json
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.apps import apps
from django.db import IntegrityError
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.urls import reverse

from chatsite.contrib.lab.experiments import comparing, job, real_turns, store
from chatsite.contrib.lab.experiments.models import Experiment
from chatsite.contrib.lab.experiments.replay_steps import PlayedTurn, ReplaySteps
from chatsite.contrib.operators.budgets.models import MonthlyUse
from chatsite.review.models import AccessEvent
from chatsite.turns import runner
from chatsite.turns.models import Allowance
from memory import actions, transcript
from memory.compaction import compactor, lease
from memory.evaluation.metrics import CACHE_STEP
from memory.models import Conversation
from tests.memory.scenes import plant, say, talk
from tests.remembered import remembered

# The database of a played experiment is asked from a thread with a connection of its
# own.
played = pytest.mark.django_db(transaction=True)
LANGGRAPH = {"preset": "langgraph"}
FACT = "The order A-77{n:02} of SECRET Berlin costs {n}50 euros. "


@pytest.fixture(autouse=True)
def fast(settings):
    settings.DEMO_TOKENS_PER_SECOND = 0


@pytest.fixture
@remembered
def conversation(alice):
    """Ten turns of Alice's that were never compacted."""
    made = transcript.create_conversation(alice, title="SECRET title")
    for n in range(10):
        say(made, FACT.format(n=n) * 3)
    return Conversation.objects.get(pk=made.pk)


@pytest.fixture
def start(conversation, staff):
    """start(**values) -> an experiment of the conversation that waits."""

    def make(policy=LANGGRAPH, on=None, **values):
        target = on or conversation
        fields = {"user": staff, "model": "demo", "budget": 100_000, **values}
        return Experiment.objects.create(
            conversation=target,
            policy=policy,
            last_seq=target.next_seq - 1,
            all_messages=target.messages.count(),
            **fields,
        )

    return make


def play(experiment):
    """Take the experiment that waits and play it to its end, as a sweep would."""
    claim = store.claim()
    assert claim.row_id == experiment.pk
    async_to_sync(job.run)(claim)
    experiment.refresh_from_db()
    return experiment


def steps_of(experiment):
    return ReplaySteps.from_json(experiment.result["steps"])


def hash_everything():
    """Hash every row of every table, except those of the lab and the use of
    its users.
    """
    rows = [
        repr(sorted(QuerySet(model).order_by("pk").values_list(), key=repr))
        for model in apps.get_models(include_auto_created=True)
        if model not in (Experiment, AccessEvent, Allowance, MonthlyUse)
    ]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def live_through(conversation, policy, texts):
    """Make the same conversation as it would have been under the policy."""
    conversation.policy = policy
    conversation.save()
    for text in texts:
        say(conversation, text)
        async_to_sync(compactor.compact_conversation)(
            conversation.pk,
            runner.make_summariser("demo", payer=conversation.owner_id),
            context_window=32_000,
        )
    return Conversation.objects.get(pk=conversation.pk)


@played
class TestPlaying:
    def test_experiment_changes_only_its_own_row(self, start):
        experiment = start()
        before = hash_everything()
        play(experiment)
        assert experiment.state == "done"
        assert steps_of(experiment).versions
        assert hash_everything() == before

    def test_replay_under_the_own_policy_equals_the_conversation(self, alice, start):
        """The experiment of a conversation's own policy finds what really happened."""
        policy = {"preset": "langgraph", "recall_tokens": 200}
        texts = [FACT.format(n=n) * 40 for n in range(9)]
        lived = live_through(transcript.create_conversation(alice), policy, texts)
        experiment = play(start(policy, on=lived))
        real_rows = lived.summaries.order_by("version")
        assert [
            (v.first_seq, v.last_seq, v.text) for v in steps_of(experiment).versions
        ] == [(row.first_seq, row.last_seq, row.text) for row in real_rows]
        sent = [PlayedTurn(*each) for each in experiment.result["real"]["turns"]]
        assert [(t.seq, t.tokens, t.recalled) for t in steps_of(experiment).turns] == [
            (t.seq, t.tokens, t.recalled) for t in sent
        ]
        for mine, theirs in zip(steps_of(experiment).turns, sent, strict=True):
            assert abs(mine.cached - theirs.cached) <= CACHE_STEP
        assert sum(turn.cached for turn in sent) > 0

    def test_prompts_stay_the_same_without_compactions(self, start, conversation):
        experiment = play(start({"enabled": False, "recall_tokens": 0}))
        calls = conversation.model_calls.order_by("message__seq")
        sent = list(calls.values_list("tokens_estimated", flat=True))
        assert [turn.tokens for turn in steps_of(experiment).turns] == sent
        assert (experiment.requests, experiment.spent) == (0, 0)

    def test_experiment_reports_its_spending(self, start):
        experiment = play(start())
        assert experiment.requests == len(steps_of(experiment).versions) > 1
        assert experiment.spent == experiment.tokens_in + experiment.tokens_out
        sides = experiment.result["sides"]
        assert sides["experiment"]["read"] == experiment.tokens_in > 0
        assert sides["real"]["read"] == 0

    def test_facts_of_the_messages_are_in_the_view_or_nowhere(self, start):
        policy = {"strategy": "window", "trigger": ["messages", 6]}
        experiment = play(start({**policy, "keep": ["messages", 2]}))
        sides, found = experiment.result["sides"], experiment.result["facts"]
        assert found["looked_at"] == found["found"] > 20
        assert 0 < sides["experiment"]["facts_nowhere"] < found["found"]
        assert len(sides["experiment"]["lost"]) == min(
            comparing.MAX_LOST, sides["experiment"]["facts_nowhere"]
        )
        assert sides["real"]["facts_nowhere"] == 0

    def test_replay_skips_excluded_and_deleted_messages(self, start, conversation):
        actions.exclude_messages(conversation, [3, 4])
        actions.delete_message(conversation, 7)
        experiment = play(start())
        assert [turn.seq for turn in steps_of(experiment).turns] == [
            1,
            5,
            9,
            11,
            13,
            15,
            17,
            19,
        ]
        end = 0
        for version in steps_of(experiment).versions_at(99):
            assert version.first_seq == end + 1
            end = version.last_seq

    def test_pinned_and_important_messages_stay_word_for_word(
        self, start, conversation
    ):
        plain = play(start({**LANGGRAPH, "recall_tokens": 0}))
        policy = {**LANGGRAPH, "recall_tokens": 0, "important": ["A-7700"]}
        pinned = play(start(policy))
        assert steps_of(pinned).pinned == [1, 2]
        last = [steps_of(each).turns[-1].tokens for each in (plain, pinned)]
        assert last[1] > last[0]

    def test_rules_are_sent_where_the_policy_keeps_them(self, alice, start):
        made = transcript.create_conversation(alice)
        for text in ("From now on, always answer in German.", "Hello", "Again"):
            say(made, text)
        made.refresh_from_db()
        policy = {"enabled": False, "recall_tokens": 0}
        plain, kept = (
            steps_of(play(start(policy | {"rules": rules}, on=made))).turns
            for rules in ("offer", "keep")
        )
        assert kept[0].tokens == plain[0].tokens
        assert kept[-1].tokens > plain[-1].tokens

    def test_a_conversation_from_elsewhere_has_nothing_real_to_compare(
        self, start, conversation
    ):
        QuerySet(type(conversation.model_calls.first())).all().delete()
        experiment = play(start())
        assert experiment.result["real"]["turns"] == []
        assert experiment.result["sides"]["experiment"]["turns"] == 10

    def test_the_view_of_any_turn_is_known(self, start):
        steps = steps_of(play(start()))
        first = steps.versions[0]
        assert steps.versions_at(first.turn - 1) == []
        assert steps.versions_at(first.turn) == [first]
        assert [each.version for each in steps.versions_at(99)] == [
            steps.versions[-1].version
        ]

    def test_stored_steps_survive_a_round_trip(self, start):
        steps = steps_of(play(start()))
        again = ReplaySteps.from_json(json.loads(json.dumps(steps.to_json())))
        assert again == steps


@played
class TestBudget:
    def test_budget_stops_the_first_request_that_exceeds_it(self, start, upstream):
        experiment = play(start(budget=50, model="ok"))
        assert (experiment.state, experiment.error) == ("stopped", "budget")
        assert upstream.calls == []
        assert (experiment.requests, experiment.spent) == (0, 0)

    def test_stopped_experiment_shows_its_part(self, start):
        whole = play(start())
        experiment = play(start(budget=whole.spent // 2 + 400))
        assert experiment.state == "stopped"
        assert 0 < experiment.requests < whole.requests
        assert experiment.spent <= experiment.budget
        assert 0 < experiment.done_messages < 20
        assert experiment.result["sides"]["experiment"]["turns"] == len(
            steps_of(experiment).turns
        )

    def test_a_provider_that_fails_ends_it_and_its_words_stay_out(
        self, start, upstream
    ):
        experiment = play(start(model="401"))
        assert (experiment.state, experiment.error) == ("failed", "auth")
        assert "sk-test" not in json.dumps(experiment.result)
        assert experiment.spent == 0

    def test_an_unusable_summary_is_counted_and_tried_a_few_times(
        self, start, upstream
    ):
        experiment = play(start(model="empty"))
        assert experiment.state in ("done", "failed")
        assert experiment.requests <= lease.MAX_FAILURES


def leave(experiment, **values):
    """Leave it as a process does that dies in the middle."""
    fields = {"state": "running", "owner": "gone", "place": 0, "finished_at": None}
    fields |= {"lease_until": Now() - timedelta(seconds=1), **values}
    QuerySet(Experiment).filter(pk=experiment.pk).update(**fields)


class TestProcesses:
    @played
    def test_experiment_continues_after_a_process_died(self, start):
        whole = play(start())
        half = play(start(budget=whole.spent // 2 + 400))
        done, spent = half.done_messages, half.spent
        leave(half, budget=100_000, attempt=1)
        play(half)
        assert (half.state, half.attempt) == ("done", 2)
        assert 0 < done < half.done_messages == 20
        assert spent < half.spent == whole.spent
        assert steps_of(half).versions == steps_of(whole).versions
        assert [t.tokens for t in steps_of(half).turns] == [
            t.tokens for t in steps_of(whole).turns
        ]

    @played
    def test_experiment_starts_over_when_messages_changed(self, start, conversation):
        whole = play(start())
        half = play(start(budget=whole.spent // 2 + 400))
        leave(half, budget=100_000)
        actions.exclude_messages(conversation, [1, 2])
        play(half)
        assert [turn.seq for turn in steps_of(half).turns] == list(range(3, 21, 2))

    def test_process_that_lost_the_lease_writes_nothing(self, start):
        experiment = start()
        lost = store.claim()
        leave(experiment)
        assert not store.reserve(lost, 1)
        assert not store.save(lost, {}, 9)
        experiment.refresh_from_db()
        assert (experiment.state, experiment.done_messages, experiment.spent) == (
            "running",
            0,
            0,
        )

    def test_the_site_plays_no_more_at_once_than_it_may(self, start, settings):
        settings.EXPERIMENTS_AT_ONCE = 2
        experiments = [start() for _ in range(3)]
        claims = [store.claim() for _ in experiments]
        assert [claim and claim.row_id for claim in claims] == [
            *(experiments[0].pk, experiments[1].pk, None)
        ]
        store.EXPERIMENTS.finish_row(claims[0], "done")
        assert store.claim().row_id == experiments[2].pk

    def test_many_of_one_person_do_not_delay_those_of_another(
        self, start, settings, bob
    ):
        settings.EXPERIMENTS_AT_ONCE = 2
        mine = [start() for _ in range(5)]
        theirs = start(user=bob)
        claims = [store.claim() for _ in range(2)]
        assert [each.row_id for each in claims] == [theirs.pk, mine[0].pk]
        later = start(user=bob)
        store.EXPERIMENTS.finish_row(claims[0], "done")
        assert store.claim().row_id == later.pk

    def test_the_database_keeps_two_from_one_place(self, start):
        leave(start())
        other = start()
        with pytest.raises(IntegrityError):
            leave(other)

    @played
    async def test_a_sweep_of_the_server_plays_it(self, start):
        experiment = await sync_to_async(start)()
        await runner.sweep_due_work()
        async with asyncio.timeout(30):
            while not experiment.is_finished:
                await asyncio.sleep(0.05)
                await experiment.arefresh_from_db()
        assert (experiment.state, experiment.done_messages) == ("done", 20)

    @played
    def test_an_erased_conversation_ends_it_quietly(self, start, conversation):
        start()
        claim = store.claim()
        conversation.delete()
        async_to_sync(job.run)(claim)
        assert not Experiment.objects.exists()


class TestCancelling:
    @played
    def test_cancelling_ends_an_experiment_that_waits_for_its_model(
        self, start, upstream, settings
    ):
        settings.TURN_LEASE_SECONDS = 1.0
        experiment = start(model="hang")
        claim = store.claim()
        store.EXPERIMENTS.cancel_rows(Experiment.objects.filter(pk=experiment.pk))
        async_to_sync(job.run)(claim)
        experiment.refresh_from_db()
        assert (experiment.state, experiment.error) == ("stopped", "cancelled")
        assert 0 < experiment.done_messages < 20
        assert experiment.result["steps"]["turns"]


class TestReal:
    def test_a_request_that_was_tampered_with_is_left_out(self, alice):
        made = transcript.create_conversation(alice)
        calls = talk(made, 2)
        plant(calls[0], refs={"newest": 1})
        assert [turn.seq for turn in real_turns.read_turns(made, 4)] == [3]

    def test_the_latest_request_of_a_message_counts(self, alice):
        made = transcript.create_conversation(alice)
        calls = talk(made, 2)
        plant(calls[0], tokens_input=500)
        turns = real_turns.read_turns(made, 4)
        assert [(t.seq, t.tokens, t.call) for t in turns] == [
            (1, 500, calls[0].pk),
            (3, calls[1].tokens_estimated, calls[1].pk),
        ]


FORM = {
    **{"preset": "langgraph", "budget": "5000", "trigger_kind": "tokens"},
    **{"keep_kind": "tokens", "overrides": ""},
}


class TestPages:
    @pytest.fixture
    def lab(self, conversation):
        return reverse("experiments", args=[conversation.pk])

    def url(self, name, experiment):
        return reverse(name, args=[experiment.conversation_id, experiment.pk])

    def test_an_experiment_is_started_and_written_down(
        self, reviewer, lab, conversation
    ):
        page = reviewer.get(lab).content.decode()
        assert 'name="budget"' in page
        assert "Summarise at, counted in:</label>" in page
        values = {
            "trigger_size": "900",
            "keep_size": "90",
            "initial_prompt": "Be brief.",
        }
        response = reviewer.post(lab, {**FORM, **values})
        experiment = Experiment.objects.get()
        assert response["Location"] == self.url("experiment", experiment)
        assert experiment.policy == {
            **{"preset": "langgraph", "trigger": ["tokens", 900]},
            **{"keep": ["tokens", 90], "initial_prompt": "Be brief."},
        }
        assert (experiment.budget, experiment.last_seq, experiment.all_messages) == (
            5000,
            20,
            20,
        )
        assert (
            AccessEvent.objects.filter(action="try").get().target
            == f"experiment {experiment.pk}"
        )

    def test_words_are_triggers_and_nothing_need_be_summarised(
        self, reviewer, lab, conversation
    ):
        conversation.policy = {"strategy": "window", "trigger": ["topic", 0.7]}
        conversation.save()
        shown = reviewer.get(lab).content.decode()
        assert '<option value="window" selected>' in shown
        assert '<option value="topic" selected>' in shown
        values = {
            "trigger_size": "2",
            "trigger_kind": "important",
            "strategy": "window",
        }
        wrong = reviewer.post(lab, {**FORM, **values}).content.decode()
        assert "trigger important: expected a pattern" in wrong
        reviewer.post(lab, {**FORM, **values, "important": "(?i)fact\r\n\r\nbudget"})
        assert Experiment.objects.get().policy == {
            **{"preset": "langgraph", "trigger": ["important", 2]},
            **{"strategy": "window", "important": ["(?i)fact", "budget"]},
        }

    @played
    def test_the_sides_say_what_only_left_the_window(self, reviewer, start):
        policy = {"strategy": "window", "trigger": ["messages", 6]}
        experiment = play(start({**policy, "keep": ["messages", 2]}))
        assert experiment.requests == 0
        page = reviewer.get(self.url("experiment", experiment)).content.decode()
        assert "These messages left the window without a summary." in page
        assert "Window: #17 to #20, 4 messages" in page

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"budget": "0"}, "greater than or equal to 1"),
            ({"budget": ""}, "required"),
            ({"trigger_size": "10", "keep_size": "20"}, "keep 20"),
            ({"overrides": '{"colour": "red"}'}, "colour"),
            ({"overrides": "{broken"}, "valid JSON"),
            ({"overrides": '{"keep": ["turns", 2]}', "keep_size": "9"}, "Set twice"),
            ({"preset": "nothing"}, "valid choice"),
        ],
    )
    def test_form_explains_errors_and_keeps_the_input(
        self, reviewer, lab, values, words
    ):
        typed = {**FORM, "initial_prompt": "My own words.", **values}
        text = reviewer.post(lab, typed).content.decode()
        assert words in text
        assert "My own words." in text
        assert not Experiment.objects.exists()

    def test_a_conversation_without_messages_cannot_be_tried(self, reviewer, alice):
        empty = transcript.create_conversation(alice)
        lab = reverse("experiments", args=[empty.pk])
        for text in (reviewer.get(lab), reviewer.post(lab, FORM)):
            assert "no messages" in text.content.decode()
        assert not Experiment.objects.exists()

    def test_page_refuses_experiments_when_the_queue_is_full(
        self, reviewer, lab, start, settings
    ):
        for _ in range(store.MAX_QUEUED):
            start()
        assert "20 experiments are waiting" in reviewer.post(lab, FORM).content.decode()
        settings.EXPERIMENTS_AT_ONCE = 0
        assert "switched off" in reviewer.post(lab, FORM).content.decode()

    def test_user_fills_only_a_share_of_the_queue(self, start, staff, bob):
        for _ in range(store.OWN_QUEUED):
            start()
        assert (store.full_at(staff.pk), store.full_at(bob.pk)) == (10, 0)

    @played
    def test_numbers_are_for_all_and_words_for_readers(self, client, staff_with, start):
        experiment = play(start({**LANGGRAPH, "initial_prompt": "SECRET prompt"}))
        client.force_login(staff_with("metadata"))
        lab = client.get(
            self.url("experiment", experiment).replace(f"{experiment.pk}/", "")
        )
        assert 'name="budget"' not in lab.content.decode()
        for query in ("", "?turn=9", "?turn=99", "?turn=x"):
            text = client.get(
                self.url("experiment", experiment) + query
            ).content.decode()
            assert "chart-line" in text
            assert "SECRET" not in text
            assert "A-77" not in text

    @played
    def test_readers_see_both_views_and_are_written_down(self, reviewer, start):
        experiment = play(start())
        text = reviewer.get(self.url("experiment", experiment)).content.decode()
        assert "Window: #1 to #20" in text
        assert steps_of(experiment).versions_at(99)[0].text[:30] in text
        early = reviewer.get(
            self.url("experiment", experiment), {"turn": 2}
        ).content.decode()
        assert "Window: #1 to #3, 3 messages" in early
        assert (
            AccessEvent.objects.filter(target=f"experiment {experiment.pk}").count()
            == 2
        )

    @played
    def test_page_escapes_texts_of_messages_and_prompts(self, reviewer, alice, start):
        made = transcript.create_conversation(alice)
        for n in range(5):
            say(made, f"<script>alert({n})</script> {{{{ 7|add:7 }}}} Order A-99{n}00.")
        made.refresh_from_db()
        experiment = play(
            start({**LANGGRAPH, "initial_prompt": "<b>bold</b>"}, on=made)
        )
        text = reviewer.get(self.url("experiment", experiment)).content.decode()
        assert "&lt;script&gt;alert(" in text
        assert "<script>alert" not in text
        assert "<b>bold" not in text

    def test_staff_without_content_right_cannot_start_or_cancel(
        self, client, staff_with, lab, start
    ):
        client.force_login(staff_with("metadata", "export", "purge"))
        assert client.post(lab, FORM).status_code == 403
        experiment = start()
        assert client.post(self.url("experiment-cancel", experiment)).status_code == 403

    def test_progress_is_shown_until_the_end(self, reviewer, start):
        experiment = start()
        store.claim()
        QuerySet(Experiment).filter(pk=experiment.pk).update(done_messages=7)
        page = reviewer.get(self.url("experiment", experiment)).content.decode()
        bar = reviewer.get(self.url("experiment-progress", experiment)).content.decode()
        for text in (page, bar):
            text = " ".join(text.split())
            assert '<progress id="experiment-progress" value="7" max="20">' in text
        assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in page
        QuerySet(Experiment).filter(pk=experiment.pk).update(
            state="failed", error="rate_limited"
        )
        ended = reviewer.get(self.url("experiment-progress", experiment))
        assert ended["HX-Refresh"] == "true"

    def test_page_cancels_the_experiment(self, reviewer, start):
        experiment = start()
        reviewer.post(self.url("experiment-cancel", experiment))
        assert (
            "It was cancelled."
            in reviewer.get(self.url("experiment", experiment)).content.decode()
        )

    def test_an_experiment_is_found_under_its_own_conversation_alone(
        self, reviewer, start, alice
    ):
        experiment = start()
        other = transcript.create_conversation(alice)
        url = reverse("experiment", args=[other.pk, experiment.pk])
        assert reviewer.get(url).status_code == 404


class TestDeletedMessages:
    @played
    def test_deletion_removes_summaries_of_experiments(self, conversation, start):
        experiment = play(start())
        first, *others = experiment.result["steps"]["versions"]
        actions.delete_message(conversation, first["last_seq"])
        experiment.refresh_from_db()
        found = {each["version"]: each["text"] for each in steps_dump(experiment)}
        assert found[first["version"]] == ""
        for each in others:
            if each["first_seq"] > first["last_seq"]:
                assert found[each["version"]] == each["text"]
        assert experiment.state == Experiment.State.DONE
        assert [side["lost"] for side in experiment.result["sides"].values()] == [
            [],
            [],
        ]

    def test_deletion_stops_running_experiments(self, conversation, start):
        experiment, claim = start(), store.claim()
        actions.delete_message(conversation, 1)
        experiment.refresh_from_db()
        assert (experiment.state, experiment.error) == (
            Experiment.State.STOPPED,
            "message_deleted",
        )
        assert not store.save(claim, {"versions": []}, 2)

    @played
    def test_page_explains_missing_text(self, conversation, start, reviewer):
        experiment = play(start())
        actions.delete_message(
            conversation, experiment.result["steps"]["versions"][-1]["last_seq"]
        )
        url = reverse("experiment", args=[conversation.pk, experiment.pk])
        assert "permanently deleted" in reviewer.get(url).content.decode()


def steps_dump(experiment):
    return experiment.result["steps"]["versions"]
