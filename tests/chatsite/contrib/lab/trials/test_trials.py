"""Replies tried again: what is sent, what is kept, how it ends, and what it leaves
alone.
"""

import hashlib
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.apps import apps
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.urls import reverse

from chatsite.contrib.lab.trials import job, services, store
from chatsite.contrib.lab.trials.models import Trial
from chatsite.contrib.operators.budgets.models import MonthlyUse
from chatsite.protocol.errors import CommandError
from chatsite.turns import runner, variations
from chatsite.turns.models import Allowance
from memory import actions, library, transcript, versions
from memory.models import Conversation, ModelCall, Prompt
from memory.transcript import ActionError, TextError
from memory.view import rebuilding
from memory.view.variation import VARIED, Variation
from tests.fakes.calling import calling
from tests.memory.scenes import summarise

from ....scenes import HTMX, signed_in, submit, talk_in_turns, violations
from ....sockets import Chat

pytestmark = pytest.mark.django_db(transaction=True)
# What a trial may write besides its own rows: what was sent, and what it cost.
OF_TRIALS = (
    *(Trial, ModelCall, Prompt, Prompt.conversations.through),
    *(Allowance, MonthlyUse),
)


@pytest.fixture(autouse=True)
def fast(settings):
    settings.DEMO_TOKENS_PER_SECOND = 0


@pytest.fixture
def chat(conversation):
    """Six messages, of which a summary covers two."""
    summarise(conversation, 1, 2, text="Lance was greeted.")
    talk_in_turns(conversation, "And the hotel?")
    return Conversation.objects.get(pk=conversation.pk)


def work_off():
    """Write the trials that wait, as a sweep would."""
    while True:
        claim = store.claim_trial()
        if claim is None:
            return
        async_to_sync(job.run_trial)(claim)


def try_again(chat, seq, **changes):
    trial = services.start_trial(chat, seq, Variation(**changes))
    work_off()
    return Trial.objects.select_related("call").get(pk=trial.pk)


def run_turn(chat, text):
    """A message, answered as a server process does it."""
    turn = submit(chat, text).turn
    async_to_sync(runner._drive_turns)(chat.pk)
    turn.refresh_from_db()
    return turn


def sent_texts(trial):
    wire = rebuilding.rebuild_context(trial.call).wire
    return "\n".join(str(each["content"]) for each in wire)


def hash_tables():
    rows = [
        repr(list(QuerySet(model).order_by("pk").values_list()))
        for model in apps.get_models(include_auto_created=True)
        if model not in OF_TRIALS
    ]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def test_unedited_it_is_the_request_that_was_sent(chat):
    transcript.change_tools(chat, ["calculate"], answers_late=False)
    run_turn(chat, 'use calculate {"expression": "1+1"}')
    actions.pin_message(chat, 3)
    run_turn(chat, "What was my budget?")
    calls = list(ModelCall.objects.filter(purpose="reply").select_related("message"))
    assert len(calls) >= 6
    for call in calls:
        trial = try_again(chat, call.message.seq)
        assert trial.state == "done", trial.error
        assert trial.call.sha256 == call.sha256
        assert trial.call.purpose == "trial"
    assert violations() == []


def test_trial_changes_only_its_own_row(chat):
    before = hash_tables()
    for changes in (
        {"edited": 5, "text": "And the train?"},
        {"left_out": 3},
        {"brought_back": 1},
        {"without_summaries": True, "without_recall": True},
        {"preset": "langgraph"},
        {"temperature": 0.0},
    ):
        assert try_again(chat, 6, **changes).state == "done"
    assert hash_tables() == before
    assert violations() == []


def test_changes_are_sent_and_verified(chat):
    cases = {
        "Lance was greeted": ({}, {"without_summaries": True}),
        "budget?\nReply": ({}, {"left_out": 3}),
        "And the hotel?": ({}, {"edited": 5, "text": "And the train?"}),
    }
    for words, (usual, changed) in cases.items():
        assert words in sent_texts(try_again(chat, 6, **usual))
        trial = try_again(chat, 6, **changed)
        assert words not in sent_texts(trial)
        assert rebuilding.verify_context(trial.call)
    assert "And the train?" in sent_texts(trial)
    assert "Hello" in sent_texts(try_again(chat, 6, brought_back=1))
    talk_in_turns(chat, "And back?")
    preset = try_again(chat, 8, preset="langgraph")
    assert preset.call.refs["window"] == [[5, 6]]
    assert rebuilding.verify_context(preset.call)


def test_the_model_and_its_temperature_reach_the_provider(chat, upstream, settings):
    settings.CHAT_MODELS = ["other"]
    trial = try_again(chat, 6, model="other", temperature=0.5)
    assert trial.text
    body = upstream.calls[-1].body
    assert (body["model"], body["temperature"]) == ("other", 0.5)
    assert trial.call.tokens_input
    assert Allowance.objects.get(user=chat.owner).tokens_used
    assert upstream.violations == []


def test_a_form_that_is_refused_is_sent_in_another(chat, upstream, settings):
    settings.CHAT_MODELS = ["strict-system"]
    upstream.script("no-system-role")
    trial = try_again(chat, 6, model="strict-system")
    assert trial.state == "done", trial.error
    assert violations() == []


def test_tools_are_offered_as_they_were_and_not_run(alice, upstream):
    chat = transcript.create_conversation(alice, model="ok", tools=["calculate"])
    run_turn(chat, "How much is it?")
    upstream.script(calling(("calculate", {"expression": "1+1"})))
    trial = try_again(chat, 2)
    names = [each["function"]["name"] for each in upstream.calls[-1].body["tools"]]
    assert names == ["calculate"]
    assert trial.call.refs["tools"] == ["calculate"]
    assert trial.asked == ["calculate"]
    assert not chat.tool_calls.exists()


@pytest.mark.parametrize(
    ("seq", "changes", "why"),
    [
        (99, {}, "No request of a reply #99"),
        (6, {"edited": 1, "text": "Hi"}, "#1 is not in this request"),
        (6, {"edited": 5, "text": " "}, "empty"),
        (6, {"edited": 5, "text": "x" * 32_001}, "the limit is 32,000"),
        (6, {"left_out": 5}, "can't be left out"),
        (6, {"brought_back": 4}, "in it already"),
        (6, {"brought_back": 6}, "no message #6 before"),
        (6, {"model": "gone"}, "not offered here"),
        (6, {"preset": "gone"}, "no such preset"),
    ],
)
def test_error_explains_why_a_trial_is_refused(chat, seq, changes, why):
    with pytest.raises((ActionError, TextError), match=why):
        services.start_trial(chat, seq, Variation(**changes))
    assert not Trial.objects.exists()


def test_32000_characters_of_changes_are_sent_or_explained(chat):
    trial = try_again(chat, 6, edited=5, text="word " * 6_400)
    assert trial.state == "done"
    Trial.objects.all().delete()
    from django.test import override_settings

    with override_settings(CONTEXT_WINDOW=2_000):
        trial = try_again(chat, 6, edited=5, text="word " * 6_400)
    assert (trial.state, trial.error) == ("failed", "context_length")


def test_a_text_that_was_deleted_can_not_be_sent_again(chat):
    trial = try_again(chat, 6, edited=5, text="A secret of mine")
    variations.set_next(chat, trial.variation)
    actions.delete_message(chat, 5)
    chat.refresh_from_db()
    assert not Trial.objects.exists()
    assert chat.next_request == {}
    assert not Prompt.objects.filter(text__contains="secret").exists()
    with pytest.raises(ValueError, match="was deleted"):
        services.start_trial(chat, 6, Variation())
    assert violations() == []


def test_a_conversation_that_is_erased_takes_none(chat):
    trial = services.start_trial(chat, 6, Variation())
    claim = store.claim_trial()
    library.erase_conversation(chat)
    async_to_sync(job.run_trial)(claim)
    assert not Trial.objects.filter(pk=trial.pk).exists()
    assert not ModelCall.objects.filter(purpose="trial").exists()


def test_a_hundred_at_once_wait_in_a_queue(chat, bob):
    accepted, refused = 0, set()
    for _ in range(100):
        try:
            services.start_trial(chat, 6, Variation())
            accepted += 1
        except CommandError as error:
            refused.add(error.code)
    assert accepted == store.OWN_WAITING
    assert refused == {"queue_full"}
    running = [store.claim_trial() for _ in range(store.OWN_RUNNING)]
    assert all(running)
    assert store.claim_trial() is None
    other = transcript.create_conversation(bob)
    talk_in_turns(other, "Hello")
    theirs = services.start_trial(other, 2, Variation())
    assert store.claim_trial().row_id == theirs.pk


def test_the_tokens_of_the_day_hold_for_it(chat):
    trial = services.start_trial(chat, 6, Variation())
    Allowance.objects.filter(user=chat.owner).update(tokens_per_day=1)
    work_off()
    trial.refresh_from_db()
    assert (trial.state, trial.error) == ("failed", "quota")
    with pytest.raises(CommandError, match="used up"):
        services.start_trial(chat, 6, Variation())


def expire(trial):
    Trial.objects.filter(pk=trial.pk).update(lease_until=Now() - timedelta(seconds=1))


def test_trial_of_dead_processes_is_interrupted(chat, settings):
    trial = services.start_trial(chat, 6, Variation())
    first = store.claim_trial()
    expire(trial)
    second = store.claim_trial()
    assert (second.row_id, second.attempt) == (trial.pk, 2)
    assert store.finish_trial(first, job.TurnResult("done", "Of the first")) is None
    expire(trial)
    [ended] = store.end_left_trials()
    assert store.claim_trial() is None
    assert (ended.state, ended.error) == ("interrupted", "interrupted")


def test_waiting_and_running_trials_are_stopped(chat):
    waiting = services.start_trial(chat, 6, Variation())
    assert store.end_trial(waiting).state == "stopped"
    running = services.start_trial(chat, 6, Variation())
    claim = store.claim_trial()
    assert store.end_trial(running).state == "running"
    async_to_sync(job.run_trial)(claim)
    running.refresh_from_db()
    assert running.state == "stopped"
    assert running.call is None


def test_owner_stops_the_trial_on_the_page(client, chat):
    trial = services.start_trial(chat, 6, Variation())
    address = reverse("trial-stop", args=[chat.uuid, trial.pk])
    for _ in range(2):
        assert "Stopped" in client.post(address, headers=HTMX).content.decode()


class TestNextOnly:
    def test_changes_that_do_not_apply_are_not_recorded(self, client, chat):
        variations.set_next(chat, Variation(edited=1, text="Hi", left_out=99))
        pane = client.get(reverse("conversation-context", args=[chat.uuid]))
        assert "none of those changes applies" in pane.content.decode()
        turn = run_turn(chat, "One more")
        assert chat.model_calls.get(message=turn.reply).refs[VARIED] == {}

    def test_model_that_is_no_longer_offered_is_refused(self, client, chat):
        trial = try_again(chat, 6, without_recall=True)
        Trial.objects.filter(pk=trial.pk).update(changes={"model": "gone"})
        address = reverse("trial-next", args=[chat.uuid, trial.pk])
        answer = client.post(address)
        assert (answer.status_code, b"not offered" in answer.content) == (409, True)
        chat.refresh_from_db()
        assert chat.next_request == {}

    def test_withdrawn_changes_are_not_applied(self, chat):
        chat.model = ""
        variations.set_next(chat, Variation(without_summaries=True))
        turn = submit(chat, "One more").turn
        turn.conversation.refresh_from_db()
        variations.set_next(Conversation.objects.get(pk=chat.pk), None)
        assert variations.take_next(turn) is None
        chat.refresh_from_db()
        assert chat.next_request == {}

    def test_changes_apply_to_one_message_and_are_recorded(self, client, chat):
        chat.model = ""
        trial = try_again(chat, 6, without_summaries=True, temperature=0.0)
        services.use_next(chat, trial)
        pane = client.get(reverse("conversation-context", args=[chat.uuid]))
        assert "without summaries" in pane.content.decode()
        first, second = run_turn(chat, "One more"), run_turn(chat, "And one more")
        calls = {c.message.seq: c for c in chat.model_calls.filter(purpose="reply")}
        assert calls[first.reply.seq].refs["summaries"] == []
        assert calls[second.reply.seq].refs["summaries"] != []
        pane = client.get(
            reverse("conversation-context", args=[chat.uuid]),
            {"reply": first.reply.seq},
        )
        assert "sent differently: temperature 0.0" in pane.content.decode()
        assert "Exactly what was sent" in pane.content.decode()
        assert violations() == []

    def test_changes_of_the_next_message_can_be_withdrawn(self, client, chat):
        services.use_next(chat, try_again(chat, 6, without_summaries=True))
        client.post(reverse("trial-next-forget", args=[chat.uuid]), headers=HTMX)
        turn = run_turn(chat, "One more")
        assert chat.model_calls.get(message=turn.reply).refs["summaries"] != []


class TestReply:
    def test_trial_becomes_the_reply_of_a_branch(self, client, chat):
        trial = try_again(chat, 4, edited=3, text="What is left of my budget?")
        answer = client.post(reverse("trial-reply", args=[chat.uuid, trial.pk]))
        made = chat.branches.get()
        assert answer.url == reverse("conversation-detail", args=[made.uuid])
        assert made.messages.get(seq=4).text == trial.text
        assert made.messages.count() == 4
        call = made.model_calls.get(message__seq=4)
        assert call.sha256 == trial.call.sha256
        assert chat.messages.count() == 6
        assert violations() == []
        turn = run_turn(made, "Go on")
        assert turn.state == "done"
        assert violations() == []


class TestPages:
    def start(self, client, chat, **fields):
        address = reverse("trials-start", args=[chat.uuid, 6])
        return client.post(address, fields, headers=fields.pop("headers", {}))

    def test_the_same_as_json(self, client, chat):
        answer = self.start(client, chat, act="leave-out", message="3")
        assert answer.status_code == 201
        assert answer.json()["changes"] == {"left_out": 3}
        work_off()
        listed = client.get(reverse("trials-json", args=[chat.uuid, 6])).json()
        [trial] = listed["trials"]
        assert trial["state"] == "done"
        assert len(trial["sha256"]) == 64
        refused = self.start(client, chat, act="leave-out", message="99")
        assert refused.status_code == 409
        assert "#99 is not in" in refused.json()["detail"]

    def test_the_dialog_shows_both_answers(self, client, chat):
        address = reverse("trials-start", args=[chat.uuid, 6])
        started = client.post(address, {"temperature": "0"}, headers=HTMX)
        assert "Waiting" in started.content.decode()
        work_off()
        address = reverse("trials", args=[chat.uuid, 6])
        page = client.get(address, headers=HTMX).content.decode()
        assert "Temperature 0.0" in page
        assert "Reply to: And the hotel?" in page
        words = reverse("trial-words", args=[chat.uuid])
        field = client.get(words, {"message": "3"}).content.decode()
        assert "What is my budget?" in field

    def test_strangers_and_shared_links_find_nothing(self, client, chat, bob):
        from chatsite.features.sharing import services as sharing

        trial = try_again(chat, 6, edited=5, text="A secret")
        stranger = signed_in(bob)
        for name, number in (("trials", 6), ("trials-json", 6)):
            address = reverse(name, args=[chat.uuid, number])
            assert stranger.get(address).status_code == 404
        for name in ("trial-stop", "trial-next", "trial-reply"):
            address = reverse(name, args=[chat.uuid, trial.pk])
            assert stranger.post(address).status_code == 404
        share = sharing.create_share(chat, with_view=True)
        page = client.get(reverse("shared-page", args=[share.token])).content.decode()
        assert "again differently" not in page
        assert "secret" not in page


class TestSocket:
    async def write(self, chat, *pages):
        """A trial, begun once these pages watch it; its number."""
        trial = await sync_to_async(services.start_trial)(chat, 6, Variation())
        for page in pages:
            await page.command(type="watch_trial", trial=trial.pk)
        claim = await sync_to_async(store.claim_trial)()
        await job.run_trial(claim)
        return await Trial.objects.aget(pk=trial.pk)

    async def test_socket_streams_the_trial_like_a_reply(self, chat, session):
        async with Chat(chat, session) as page:
            trial = await self.write(chat, page)
            seen = await page.until("trial", state="done")
        told = [each for each in seen if each["type"] == "trial"]
        assert told[-1]["state"] == "done"
        known = ""
        for each in told:
            known = known[: each["base"]] + each["tail"]
        assert known == trial.text

    async def test_a_page_gets_them_that_has_asked(self, chat, session):
        pages = (Chat(chat, session, protocol="") for _ in range(2))
        async with next(pages) as page, next(pages) as other:
            await page.html('id="refresh"')
            await other.html('id="refresh"')
            trial = await self.write(chat, page)
            seen = await page.html("SHA-256")
            assert f'id="trial-{trial.pk}" hx-swap-oob="true"' in seen
            # The page drops it if its card was closed.
            assert "<!--optional-->" in seen
            assert trial.text in seen
            assert other.waiting == 0

    async def test_socket_draws_a_finished_trial_whole(self, chat, session):
        trial = await sync_to_async(try_again)(chat, 6)
        async with Chat(chat, session, protocol="") as page:
            await page.command(type="watch_trial", trial=trial.pk)
            assert trial.call.sha256 in await page.html("SHA-256")
        async with Chat(chat, session) as page:
            await page.command(type="watch_trial", trial=trial.pk + 1)
            [*_, error] = await page.until("error")
            assert error["code"] == "not_found"


class TestAskAgain:
    def ask(self, chat, seq=6):
        trial = services.ask_again(chat, seq)
        work_off()
        return Trial.objects.select_related("call").get(pk=trial.pk)

    def test_answer_has_what_the_model_reads_now(self, chat):
        before = sent_texts(try_again(chat, 6))
        [summary] = versions.active_summaries(chat)
        actions.rewrite_summary(chat, summary.version, "Go to Nara.", author=chat.owner)
        variations.switch_off(chat, ("message-3",))
        trial = self.ask(chat)
        assert trial.state == "done", trial.error
        sent = sent_texts(trial)
        assert "Go to Nara." in sent
        assert "Go to Nara." not in before
        assert "What is my budget?" in before
        assert "Reply to: What is my budget?" in sent  # its reply stays
        assert sent.count("What is my budget?") < before.count("What is my budget?")
        assert trial.changes == {"now": True, "off": ["message-3"]}
        assert rebuilding.verify_context(trial.call)
        assert violations() == []

    def test_unchanged_memory_is_asked_the_same(self, chat):
        call = ModelCall.objects.get(purpose="reply", message__seq=6)
        assert self.ask(chat).call.sha256 == call.sha256

    def test_steps_of_the_reply_are_sent_again(self, chat):
        transcript.change_tools(chat, ["calculate"], answers_late=False)
        turn = run_turn(chat, 'use calculate {"expression": "1+1"}')
        chat.refresh_from_db()
        trial = self.ask(chat, turn.reply.seq)
        assert trial.call.refs["steps"]
        assert trial.call.sha256 == turn.reply.model_calls.latest("pk").sha256

    def test_hidden_question_is_not_asked(self, chat):
        actions.exclude_messages(chat, [5])
        with pytest.raises(ActionError, match="does not see the question"):
            services.ask_again(chat, 6)

    def test_page_shows_the_answer_beside_the_reply(self, client, chat):
        chat.changes.create(action="pin", seq=3)
        pane = client.get(reverse("conversation-context", args=[chat.uuid]))
        address = reverse("trials-ask", args=[chat.uuid, 6])
        assert address in pane.content.decode()
        answer = client.post(address, headers=HTMX)
        assert 'class="beside"' in answer.content.decode()
        assert "With what the model reads now" in answer.content.decode()
        assert client.post(address).status_code == 201

    def test_answer_becomes_the_reply_of_a_branch(self, chat):
        variations.switch_off(chat, ("summaries",))
        made = services.make_reply(chat, self.ask(chat))
        assert made.messages.get(seq=6).text
        assert violations() == []
