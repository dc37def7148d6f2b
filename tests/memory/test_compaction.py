"""The compaction job against the database, with a scripted summariser."""

import asyncio
import json
import threading
from datetime import timedelta

import pytest
from channels.db import database_sync_to_async
from django.db import OperationalError
from django.db.models.functions import Now
from django.template.loader import render_to_string
from django.utils import timezone
from langchain_core.messages import AIMessage

from memory import context, transcript, versions
from memory.compaction import commit, compactor, lease, preparation
from memory.models import Conversation, ModelCall, Summary
from memory.view import places

from .scenes import Recorder, add_turns, unguarded
from .scenes import run_compaction as compact

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice, preset="langgraph")


@pytest.fixture
def layered(alice):
    policy = {
        "trigger": ["tokens", 200],
        "keep": ["tokens", 60],
        "max_summary_tokens": 60,
        "summary_budget": 60,
        "fan_in": 2,
    }
    return transcript.create_conversation(alice, policy=policy)


async def talked(conversation, turns, **options):
    await database_sync_to_async(add_turns)(conversation, turns, **options)


async def statuses(conversation):
    rows = conversation.summaries.order_by("version")
    return [status async for status in rows.values_list("status", flat=True)]


async def ranges(conversation):
    rows = await database_sync_to_async(versions.active_summaries)(conversation)
    return [(row.first_seq, row.last_seq) for row in rows]


async def test_compaction_does_nothing_below_the_trigger(conversation):
    await talked(conversation, 3)
    recorder = Recorder()
    outcome = await compact(conversation, recorder)
    assert outcome == compactor.CompactionOutcome("nothing")
    assert recorder.requests == []


async def test_compaction_takes_six_of_eight_messages_like_the_tutorial(conversation):
    await talked(conversation, 4)
    outcome = await compact(conversation)
    assert outcome == compactor.CompactionOutcome("folded", (1,))
    summary = await conversation.summaries.aget()
    assert (summary.first_seq, summary.last_seq, summary.text) == (1, 6, "They talked.")
    assert summary.trigger == {"kind": "messages", "value": 8, "limit": 7}
    assert summary.tokens_after < summary.tokens_before
    assert summary.status == Summary.Status.ACTIVE


async def test_the_transcript_is_untouched_by_ten_compactions(conversation):
    texts = []
    for _ in range(11):
        await talked(conversation, 3)
        rows = conversation.messages.order_by("seq").values_list("seq", "text")
        texts = [row async for row in rows]
        await compact(conversation)
        assert [row async for row in rows.all()] == texts
    assert await conversation.summaries.acount() == 10


async def test_compaction_extends_the_running_summary(conversation):
    await talked(conversation, 4)
    recorder = Recorder("First.", "Second.")
    await compact(conversation, recorder)
    await talked(conversation, 3)
    await compact(conversation, recorder)
    document = json.loads(recorder.requests[1][-1].content)
    assert document["previous_summary"] == "First."
    assert await ranges(conversation) == [(1, 12)]
    assert await statuses(conversation) == ["superseded", "active"]
    newest = await conversation.summaries.aget(version=2)
    assert newest.generation == 2
    assert [row.version async for row in newest.folded_from.all()] == [1]


async def test_every_message_is_read_exactly_once(conversation):
    recorder = Recorder()
    for _ in range(6):
        await talked(conversation, 3)
        await compact(conversation, recorder)
    read = [number for request in recorder.read for number in request]
    cutoff = (await ranges(conversation))[-1][1]
    assert read == list(range(1, cutoff + 1))


async def test_layered_segments_tile_and_merge(layered):
    recorder = Recorder(*["They talked about many numbers. " * 3] * 60)
    for _ in range(16):
        await talked(layered, 2)
        await compact(layered, recorder)
    spans = await ranges(layered)
    assert spans[0][0] == 1
    assert all(a[1] + 1 == b[0] for a, b in zip(spans, spans[1:], strict=False))
    rows = [row async for row in layered.summaries.all()]
    assert len({row.level for row in rows}) > 1
    # Merged from the transcript, which still fits: nothing was rewritten.
    assert {row.generation for row in rows} == {1}


async def test_compaction_records_every_request(conversation):
    await talked(conversation, 4)
    await compact(conversation)
    call = await ModelCall.objects.select_related("summary").aget()
    assert (call.purpose, call.summary.version) == ("summary", 1)
    assert (call.tokens_input, call.tokens_output, call.error) == (50, 5, "")
    assert len(call.sha256) == 64


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        (compactor.InvokeError("timeout"), "failed", "timeout"),
        ("", "rejected", "EmptySummary"),
        ("   \n", "rejected", "EmptySummary"),
        ("I'm sorry, I can't help with that.", "rejected", "RefusedSummary"),
        ("long " * 3000, "rejected", "OverlongSummary"),
    ],
)
async def test_a_failure_changes_nothing_but_the_record(
    conversation, answer, status, error
):
    await talked(conversation, 4)
    before = await database_sync_to_async(context.build_request_context)(conversation)
    outcome = await compact(conversation, answer)
    assert (outcome.state, outcome.error) == ("failed", error)
    after = await database_sync_to_async(context.build_request_context)(conversation)
    assert after.wire == before.wire
    summary = await conversation.summaries.aget()
    assert (summary.status, summary.error, summary.text) == (status, error, "")
    assert await ModelCall.objects.filter(summary=summary).aexists()


async def test_compaction_backs_off_and_gives_up_after_three_failures(conversation):
    await talked(conversation, 4)
    for _ in range(3):
        assert (await compact(conversation, "")).state == "failed"
        assert (await compact(conversation, "")).state == "busy"
        await Conversation.objects.filter(pk=conversation.pk).aupdate(
            compaction_retry_at=None
        )
    assert (await compact(conversation)).state == "busy"
    await conversation.arefresh_from_db()
    assert not lease.may_compact(conversation)


async def test_compaction_catches_up_when_the_summariser_is_back(conversation):
    recorder = Recorder("")
    await talked(conversation, 4)
    await compact(conversation, recorder)
    await talked(conversation, 20)
    await database_sync_to_async(lease.reset_back_off)(conversation)
    assert (await compact(conversation, recorder)).state == "folded"
    await conversation.arefresh_from_db()
    assert conversation.compaction_failures == 0
    assert recorder.read[-1][-1] == 46


async def test_replies_go_on_while_the_summariser_is_down_for_80_turns(conversation):
    limit, build = 1500, database_sync_to_async(context.build_request_context)
    for _ in range(80):
        await talked(conversation, 1)
        await compact(conversation, compactor.InvokeError("unavailable"))
        assert (await build(conversation, limit=limit)).tokens <= limit
    assert set(await statuses(conversation)) == {"failed"}
    counts = await database_sync_to_async(places.count_places)(conversation)
    assert counts == {"window": 160}
    recorder = Recorder()
    await database_sync_to_async(lease.reset_back_off)(conversation)
    assert (await compact(conversation, recorder)).state == "folded"
    assert sum(recorder.read, []) == list(range(1, 159))


async def test_compaction_stores_data_and_doubts_beside_the_text(alice):
    create = database_sync_to_async(transcript.create_conversation)
    policy = {"preset": "topics", "trigger": ["turns", 4], "keep": ["turns", 1]}
    conversation = await create(alice, policy=policy)
    await talked(conversation, 4)
    topics = {"topics": [{"topic": "Numbers", "text": "It cost 9876 euros."}]}
    await compact(conversation, json.dumps(topics))
    summary = await conversation.summaries.aget()
    assert summary.structured == topics
    assert "Numbers" in summary.text
    assert summary.flags["unsupported"] == ["9876"]


async def test_important_messages_stay_word_for_word(alice):
    policy = {"preset": "langgraph", "important": ["Message [24] "]}
    conversation = await database_sync_to_async(transcript.create_conversation)(
        alice, policy=policy
    )
    await talked(conversation, 4)
    await compact(conversation)
    built = await database_sync_to_async(context.build_request_context)(conversation)
    assert built.refs["pinned"] == [[3, 3], [5, 5]]
    assert "Message 2 says" in str(built.wire)


async def test_concurrent_compactions_make_one_version(conversation):
    await talked(conversation, 4)
    outcomes = await asyncio.gather(*(compact(conversation) for _ in range(4)))
    states = sorted(outcome.state for outcome in outcomes)
    assert states == ["busy", "busy", "busy", "folded"]
    assert await conversation.summaries.acount() == 1


async def test_a_result_is_discarded_when_the_view_has_changed(conversation):
    await talked(conversation, 4)

    async def edited_meanwhile():
        await database_sync_to_async(transcript.supersede_messages)(conversation, 5)
        return "They talked."

    outcome = await compact(conversation, edited_meanwhile)
    assert outcome.state == "discarded"
    assert not await conversation.summaries.aexists()


async def test_messages_of_an_open_turn_are_not_compacted(conversation):
    await talked(conversation, 6)
    await compact(conversation, open_from=lambda _: 9)
    assert await ranges(conversation) == [(1, 6)]


async def test_excluded_messages_are_not_read(conversation):
    await talked(conversation, 5)
    await conversation.messages.filter(seq=3).aupdate(excluded_at=Now())
    recorder = Recorder()
    await compact(conversation, recorder)
    assert 3 not in recorder.read[0]
    counts = await database_sync_to_async(places.count_places)(conversation)
    assert counts == {"summary": 7, "excluded": 1, "window": 2}


async def test_a_forced_compaction_goes_below_the_trigger(conversation):
    await talked(conversation, 3)
    assert (await compact(conversation, force=True)).state == "folded"
    assert await ranges(conversation) == [(1, 4)]


async def test_a_disabled_policy_never_compacts(alice):
    policy = {"preset": "langgraph", "enabled": False}
    conversation = await database_sync_to_async(transcript.create_conversation)(
        alice, policy=policy
    )
    await talked(conversation, 10)
    assert (await compact(conversation)).state == "nothing"


def move(conversation, time):
    unguarded(conversation.messages.all()).update(created_at=time)


class TestDue:
    async def due(self):
        return await database_sync_to_async(lease.due_compactions)()

    async def test_compaction_of_a_dead_process_is_due(self, conversation):
        await talked(conversation, 4)
        await database_sync_to_async(lease.mark_due)(conversation.pk)
        assert await self.due() == [conversation.pk]
        await compact(conversation)
        assert await self.due() == []

    async def test_running_compaction_is_not_due(self, conversation):
        await talked(conversation, 4)
        await database_sync_to_async(lease.mark_due)(conversation.pk)
        seen = []

        async def look():
            seen.extend(await self.due())
            return "They talked."

        await compact(conversation, look)
        assert seen == []

    async def test_a_turn_that_ends_meanwhile_is_not_forgotten(self, conversation):
        await talked(conversation, 4)

        async def turn_ends():
            await database_sync_to_async(lease.mark_due)(conversation.pk)
            return "They talked."

        await compact(conversation, turn_ends)
        assert await self.due() == [conversation.pk]

    async def test_failed_compaction_is_due_after_its_back_off(self, conversation):
        await talked(conversation, 4)
        await compact(conversation, "")
        assert await self.due() == []
        await Conversation.objects.filter(pk=conversation.pk).aupdate(
            compaction_retry_at=Now(), compaction_due_at=Now()
        )
        assert await self.due() == [conversation.pk]

    @pytest.mark.parametrize("is_marked_again", [False, True])
    async def test_check_without_work_clears_the_mark(
        self, conversation, is_marked_again
    ):
        await talked(conversation, 1)
        mark = database_sync_to_async(lease.mark_due)
        await mark(conversation.pk)
        await conversation.arefresh_from_db()
        if is_marked_again:
            await asyncio.sleep(0.01)
            await mark(conversation.pk)
        is_due = database_sync_to_async(preparation.is_due)
        assert not await is_due(conversation, lambda _: None, 32_000)
        assert await self.due() == [conversation.pk] * is_marked_again

    async def test_an_idle_trigger_is_due_when_its_time_has_come(self, alice):
        policy = {"trigger": ["idle", 3600], "keep": ["messages", 2]}
        create = database_sync_to_async(transcript.create_conversation)
        conversation = await create(alice, policy=policy)
        await talked(conversation, 3)
        assert (await compact(conversation)).state == "nothing"
        await conversation.arefresh_from_db()
        wait = conversation.compaction_due_at - timezone.now()
        assert 3590 < wait.total_seconds() < 3601
        hour_ago = timezone.now() - timedelta(seconds=3601)
        await database_sync_to_async(move)(conversation, hour_ago)
        assert (await compact(conversation)).state == "folded"


class TestInvalidate:
    async def test_a_running_summary_falls_back_to_the_version_before(
        self, conversation
    ):
        for _ in range(3):
            await talked(conversation, 3 if await self.any(conversation) else 4)
            await compact(conversation)
        assert await ranges(conversation) == [(1, 18)]
        await database_sync_to_async(transcript.supersede_messages)(conversation, 14)
        assert await ranges(conversation) == [(1, 12)]
        assert await statuses(conversation) == [
            "superseded",
            "superseded",
            "stale",
            "active",
        ]

    async def any(self, conversation):
        return await conversation.summaries.aexists()

    async def test_merged_segments_come_back_as_far_as_they_are_true(self, layered):
        for _ in range(16):
            await talked(layered, 2)
            await compact(layered, "They talked about many numbers. " * 3)
        spans = await ranges(layered)
        edited = spans[-1][0] + 1
        await database_sync_to_async(transcript.supersede_messages)(layered, edited)
        left = await ranges(layered)
        assert left[-1][1] < edited
        assert [span for span in left if span in spans] == spans[:-1]

    async def test_remaining_messages_are_compacted_again(self, conversation):
        recorder = Recorder()
        await talked(conversation, 4)
        await compact(conversation, recorder)
        await database_sync_to_async(transcript.supersede_messages)(conversation, 2, 2)
        await talked(conversation, 1)
        await compact(conversation, recorder)
        assert recorder.read[-1] == [1, 3, 4, 5, 6, 7, 8]


class TestAnythingRaised:
    """Errors of a compaction are counted, delayed and recorded, and paid no more often
    than the limit."""

    @pytest.mark.parametrize("error", [KeyError("a secret"), ZeroDivisionError()])
    async def test_error_is_counted_and_recorded(self, conversation, error, caplog):
        await talked(conversation, 4)
        outcome = await compact(conversation, error)
        assert (outcome.state, outcome.error) == ("failed", "internal")
        await conversation.arefresh_from_db()
        assert conversation.compaction_failures == 1
        assert conversation.compaction_retry_at > timezone.now()
        summary = await conversation.summaries.aget()
        assert (summary.status, summary.error) == ("failed", "internal")
        assert "compaction failed" in caplog.text

    async def test_failing_compaction_is_paid_three_times_at_most(self, conversation):
        await talked(conversation, 4)
        recorder = Recorder(*[ZeroDivisionError()] * 20)
        for _ in range(20):
            await compact(conversation, recorder)
            await Conversation.objects.filter(pk=conversation.pk).aupdate(
                compaction_retry_at=None
            )
        assert len(recorder.requests) == lease.MAX_FAILURES
        assert await database_sync_to_async(lease.due_compactions)() == []

    async def test_error_is_counted_before_there_is_a_step(self, conversation):
        await talked(conversation, 4)

        def broken(_):
            raise LookupError

        outcome = await compact(conversation, open_from=broken)
        assert (outcome.state, outcome.error) == ("failed", "internal")
        await conversation.arefresh_from_db()
        assert conversation.compaction_failures == 1

    async def test_invalid_usage_is_counted_as_a_failure(self, conversation):
        await talked(conversation, 4)

        async def invoke(messages, *, schema=None):
            return AIMessage(
                "They talked.",
                usage_metadata={
                    "input_tokens": "many",
                    "output_tokens": 5,
                    "total_tokens": 5,
                },
                response_metadata={"finish_reason": "stop"},
            )

        outcome = await compactor.compact_conversation(
            conversation.pk, compactor.Summariser("m", invoke)
        )
        assert outcome.state in ("failed", "folded")
        await conversation.arefresh_from_db()
        assert conversation.compaction_failures == (outcome.state == "failed")

    async def test_a_compaction_whose_process_died_is_counted(self, conversation):
        await talked(conversation, 4)
        claim = database_sync_to_async(lease.claim_compaction)
        for _ in range(lease.MAX_FAILURES + 1):
            assert await claim(conversation.pk, force=False)
            await Conversation.objects.filter(pk=conversation.pk).aupdate(
                compaction_lease_until=timezone.now() - timedelta(seconds=1)
            )
        assert not await claim(conversation.pk, force=False)
        assert await database_sync_to_async(lease.due_compactions)() == []

    async def test_new_message_after_the_limit_triggers_one_more_attempt(
        self, conversation
    ):
        await talked(conversation, 4)
        await Conversation.objects.filter(pk=conversation.pk).aupdate(
            compaction_failures=3
        )
        assert (await compact(conversation)).state == "busy"
        await database_sync_to_async(lease.mark_due)(conversation.pk)
        recorder = Recorder("", "")
        assert (await compact(conversation, recorder)).state == "failed"
        assert (await compact(conversation, recorder)).state == "busy"
        await conversation.arefresh_from_db()
        assert not lease.may_compact(conversation)
        assert len(recorder.requests) == 1

    async def test_user_can_retry_any_number_of_times(self, conversation):
        await talked(conversation, 4)
        await Conversation.objects.filter(pk=conversation.pk).aupdate(
            compaction_failures=30_000
        )
        assert (await compact(conversation, "", force=True)).state == "failed"
        await conversation.arefresh_from_db()
        rest = conversation.compaction_retry_at - timezone.now()
        assert rest < timedelta(minutes=3)


class TestDatabaseAwayForAMoment:
    """Results that were paid for outlive a statement that fails once."""

    @pytest.fixture
    def short_lease(self, monkeypatch):
        monkeypatch.setattr(lease, "LEASE", timedelta(seconds=2))

    async def test_a_failed_renewal_does_not_start_the_compaction_twice(
        self, conversation, short_lease, monkeypatch
    ):
        await talked(conversation, 4)
        real, failed = lease.renew_compaction, []

        def renew(*args):
            if not failed:
                failed.append(1)
                raise OperationalError("once")
            return real(*args)

        monkeypatch.setattr(lease, "renew_compaction", renew)

        looked = asyncio.Event()

        async def slow():
            await looked.wait()
            return "They talked."

        recorder = Recorder(slow)
        first = asyncio.create_task(compact(conversation, recorder))
        await asyncio.sleep(2.6)
        assert (await compact(conversation, recorder)).state == "busy"
        looked.set()
        assert (await first).state == "folded"
        assert len(recorder.requests) == 1

    async def test_expired_lease_is_harmless_if_no_other_process_began(
        self, conversation, short_lease, monkeypatch
    ):
        await talked(conversation, 4)

        def renew(*args):
            raise OperationalError("for good")

        monkeypatch.setattr(lease, "renew_compaction", renew)

        async def slow():
            await asyncio.sleep(2.5)
            return "They talked."

        assert (await compact(conversation, slow)).state == "folded"

    @pytest.mark.parametrize("step", ["record_call", "commit_summary"])
    async def test_a_result_waits_for_the_database(
        self, conversation, monkeypatch, step
    ):
        await talked(conversation, 4)
        real, failed = getattr(commit, step), []

        def flaky(*args):
            if not failed:
                failed.append(1)
                raise OperationalError("once")
            return real(*args)

        flaky.__name__ = step
        monkeypatch.setattr(commit, step, flaky)
        recorder = Recorder()
        assert (await compact(conversation, recorder)).state == "folded"
        assert len(recorder.requests) == 1

    async def test_a_commit_whose_answer_got_lost_is_found_again(
        self, conversation, monkeypatch
    ):
        await talked(conversation, 4)
        real, lost = commit.commit_summary, []

        def commit_and_fail(*args):
            version = real(*args)
            if not lost:
                lost.append(1)
                raise OperationalError("after the commit")
            return version

        monkeypatch.setattr(commit, "commit_summary", commit_and_fail)
        assert await compact(conversation) == compactor.CompactionOutcome(
            "folded", (1,)
        )
        assert await conversation.summaries.acount() == 1


class TestImportantPatterns:
    """Patterns of a user are compared outside of the transaction, for a while."""

    POLICY = {
        "preset": "langgraph",
        "important": [f"[ab]*[ab]{{0,4}}{chr(ord('A') + n)}" for n in range(20)],
    }

    @pytest.fixture
    def stalling(self, alice):
        conversation = transcript.create_conversation(alice, policy=self.POLICY)
        for number in range(8):
            message, _ = transcript.append_user_message(
                conversation, text="ab" * 1990, client_id=f"c{number}"
            )
            transcript.append_reply(conversation, seq=message.seq + 1, text="ab" * 1990)
        return conversation

    async def test_patterns_block_no_other_thread_and_timeouts_are_flagged(
        self, stalling, monkeypatch
    ):
        threads, find = set(), compactor.find_important

        def find_important(*args):
            threads.add(threading.get_ident())
            return find(*args)

        monkeypatch.setattr(compactor, "find_important", find_important)
        assert (await compact(stalling)).state == "folded"
        taken = {threading.get_ident()}
        taken.add(await database_sync_to_async(threading.get_ident)())
        assert threads
        assert not threads & taken
        summary = await stalling.summaries.aget()
        last = summary.flags["unmatched"][-1]
        assert last.endswith(f"-{summary.last_seq}")
        html = await database_sync_to_async(render_to_string)(
            "chat/_summary_warnings.html", {"summary": summary}
        )
        assert last in html
