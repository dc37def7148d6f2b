"""A change of an old message: only the summary that covers it is written again."""

import pytest
from asgiref.sync import async_to_sync

from memory import actions, context, transcript, versions
from memory.compaction import compactor, lease
from memory.integrity import audit
from memory.models import Conversation, Summary
from memory.view import places
from tests.remembered import remembered

from . import scenes
from .scenes import Recorder, add_turns

pytestmark = pytest.mark.django_db(transaction=True)
# Four messages a segment.
SEGMENTS = {"trigger": ["messages", 6], "keep": ["messages", 2]}
MERGES = SEGMENTS | {"summary_budget": 8, "fan_in": 2}


def compact(conversation, *answers):
    """The numbers of the messages that the summariser read, request by request."""
    lease.reset_back_off(conversation)
    return scenes.compact(conversation, *answers).read


def make(owner, policy, compactions=6):
    made = transcript.create_conversation(owner, policy=policy)
    for turns in [3] + [2] * (compactions - 1):
        add_turns(made, turns)
        compact(made)
    return made


@pytest.fixture
@remembered
def layered(alice):
    """Six segments of four messages; 25 and 26 in the window."""
    return make(alice, SEGMENTS)


@pytest.fixture
@remembered
def merged(alice):
    return make(alice, MERGES)


def in_force(conversation):
    rows = versions.active_summaries(conversation)
    return {(row.first_seq, row.last_seq): row.pk for row in rows}


def check(conversation):
    assert "lost" not in places.count_places(conversation)
    wrong = [each for each in audit.check_memory(hashes=False) if each.code[:2] != "R8"]
    assert wrong == []


ACTS = {
    "exclude": lambda conversation: actions.exclude_messages(conversation, [7]),
    "delete": lambda conversation: actions.delete_message(conversation, 7),
    "supersede": lambda conversation: transcript.supersede_messages(conversation, 7, 7),
}


@pytest.mark.parametrize("act", ACTS)
def test_segment_of_the_message_alone_is_read_again(layered, act):
    before = in_force(layered)
    ACTS[act](layered)
    check(layered)
    assert compact(layered) == [[5, 6, 8]]
    after = in_force(layered)
    assert after.keys() == before.keys()
    assert [span for span in after if after[span] != before[span]] == [(5, 8)]
    check(layered)


def test_messages_are_in_the_window_until_they_are_compacted_again(layered):
    actions.exclude_messages(layered, [7])
    refs = context.build_request_context(layered).refs
    assert refs["window"] == [[5, 6], [8, 26]]
    assert refs["summaries"] == [1]
    compact(layered)
    assert context.build_request_context(layered).refs["window"] == [[25, 26]]


def test_a_message_that_comes_back_is_read(layered):
    actions.exclude_messages(layered, [7])
    compact(layered)
    actions.include_messages(layered, [7])
    assert compact(layered) == [[5, 6, 7, 8]]
    check(layered)


def test_other_parts_of_a_merged_segment_come_back(merged):
    assert any(row.level for row in versions.active_summaries(merged))
    actions.exclude_messages(merged, [7])
    read = compact(merged, *["They talked about it. " * 4] * 50)
    assert read[0] == [5, 6, 8]
    assert 7 not in sum(read, [])
    assert not {13, 14, 15, 16}.intersection(read[0])
    check(merged)


def test_two_changes_mend_both_places(layered):
    before = in_force(layered)
    actions.exclude_messages(layered, [7])
    actions.exclude_messages(layered, [18])
    assert compact(layered) == [[5, 6, 8], [17, 19, 20]]
    after = in_force(layered)
    kept = {span for span in before if after[span] == before[span]}
    assert kept == {(1, 4), (9, 12), (13, 16), (21, 24)}
    check(layered)


def test_an_earlier_change_before_the_first_was_mended(layered):
    actions.exclude_messages(layered, [18])
    actions.exclude_messages(layered, [3])
    assert compact(layered) == [[1, 2, 4], [17, 19, 20]]
    assert len(in_force(layered)) == 6
    check(layered)


def test_a_segment_without_a_message_left_goes_to_the_next(layered):
    actions.exclude_messages(layered, [5, 6, 7, 8])
    assert compact(layered) == [[9, 10, 11, 12]]
    assert [*in_force(layered)] == [(1, 4), (5, 12), (13, 16), (17, 20), (21, 24)]
    check(layered)


def test_a_failing_summariser_mends_later(layered):
    actions.exclude_messages(layered, [7])
    compact(layered, "", "")
    assert [*in_force(layered)] == [(1, 4)]
    check(layered)
    assert compact(layered) == [[5, 6, 8]]
    assert len(in_force(layered)) == 6


def test_summaries_stay_retracted_after_a_rebuild(layered):
    actions.exclude_messages(layered, [7])
    actions.rebuild_memory(layered)
    layered.refresh_from_db()
    assert layered.set_aside is None
    assert compact(layered)[0][:4] == [1, 2, 3, 4]
    assert in_force(layered).keys() == {(1, 24)}


def test_summaries_behind_a_restored_version_stay(layered, alice):
    later = {span: row for span, row in in_force(layered).items() if span[0] > 8}
    actions.rewrite_summary(layered, 2, "Mine.", author=alice)
    actions.exclude_messages(layered, [18])
    actions.restore_version(layered, 2, author=alice)
    compact(layered)
    now = in_force(layered)
    assert [*now][:2] == [(1, 4), (5, 8)]
    stays = {span for span in later if not span[0] <= 18 <= span[1]}
    assert {span: now[span] for span in stays} == {span: later[span] for span in stays}
    check(layered)


def test_summaries_stay_retracted_after_the_end_was_replaced(layered):
    actions.exclude_messages(layered, [7])
    transcript.supersede_messages(layered, 10)
    add_turns(layered, 3)
    compact(layered)
    stale = layered.summaries.filter(status=Summary.Status.STALE)
    assert stale.filter(last_seq__gte=10).count() == 4
    assert Conversation.objects.get(pk=layered.pk).set_aside is None
    check(layered)


def test_compaction_waits_for_an_open_turn(layered):
    actions.exclude_messages(layered, [7])
    recorder = Recorder()
    async_to_sync(compactor.compact_conversation)(
        layered.pk, compactor.Summariser("m", recorder), open_from=lambda _: 6
    )
    assert recorder.requests == []
    check(layered)
