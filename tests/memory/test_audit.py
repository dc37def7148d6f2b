"""The audit of the memory tables: silent on a healthy conversation, and one planted
violation for every kind it knows.
"""

import pytest
from django.db.models import F
from django.utils import timezone

from memory import transcript
from memory.integrity import audit
from memory.models import Conversation, Message, ModelCall, Summary
from tests.remembered import remembered

from .scenes import (
    drop_unique,
    plant,
    say,
    summarise,
    talk,
    unguarded,
)

Status = Summary.Status


@pytest.fixture
@remembered
def conversation(alice):
    return transcript.create_conversation(alice, title="Audited")


@pytest.fixture
@remembered
def compacted(conversation):
    """Ten messages: two active summaries side by side, then a window."""
    talk(conversation, 5)
    summarise(conversation, 1, 4)
    summarise(conversation, 5, 8)
    say(conversation, "after the compactions")
    return conversation


def found():
    return {violation.code for violation in audit.check_memory()}


def newest(conversation):
    return conversation.summaries.last()


def test_audit_finds_nothing_in_an_empty_database(db):
    assert list(audit.check_memory()) == []


def test_audit_finds_nothing_in_a_healthy_conversation(compacted):
    assert list(audit.check_memory()) == []


def test_audit_accepts_merged_failed_restored_and_stale_versions(compacted):
    first, second = compacted.summaries.order_by("first_seq")
    merged = summarise(compacted, 1, 8, replaces=[first, second], level=1)
    failed = {"status": Status.FAILED, "text": "", "error": "timeout"}
    summarise(compacted, 9, 10, **failed)
    transcript.supersede_messages(compacted, 7)
    merged.refresh_from_db()
    assert merged.status == Status.STALE
    assert [s.trigger["kind"] for s in compacted.summaries.filter(status="active")] == [
        "restore"
    ]
    assert list(audit.check_memory()) == []


def test_audit_accepts_excluded_messages_under_a_summary(compacted):
    compacted.messages.filter(seq=2).update(excluded_at=timezone.now())
    assert list(audit.check_memory(hashes=False)) == []


def test_audit_finds_a_gap_between_summaries(compacted):
    plant(newest(compacted), first_seq=7)
    gap, lost = audit.check_memory(hashes=False)
    assert gap.code == "R6.gap"
    assert gap.conversation_id == compacted.pk
    assert gap.detail == "#5 to #6 is left out before v2"
    assert lost.code == "R6.lost"
    assert lost.detail.startswith("2 messages between #5 and #6")


def test_audit_finds_a_gap_before_the_first_summary(compacted):
    plant(compacted.summaries.first(), first_seq=2)
    assert found() >= {"R6.gap", "R6.lost"}


def test_audit_finds_overlapping_summaries(compacted):
    plant(newest(compacted), first_seq=3)
    assert "R6.overlap" in found()


def test_audit_finds_a_summary_of_future_messages(compacted):
    plant(newest(compacted), last_seq=400)
    assert "R6.range" in found()


def test_audit_finds_an_unreserved_number(compacted):
    Conversation.objects.update(next_seq=F("next_seq") - 1)
    assert found() == {"R6.number"}


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"text": ""}, "R7.empty"),
        ({"error": "timeout"}, "R7.error"),
        ({"status": Status.FAILED}, "R7.failed"),
        ({"status": Status.REJECTED}, "R7.failed"),
        ({"status": "odd"}, "R7.status"),
    ],
)
def test_audit_finds_versions_that_are_no_summaries(compacted, values, code):
    plant(newest(compacted), **values)
    assert code in found()


def test_audit_finds_a_summary_without_a_call(compacted):
    unguarded(ModelCall.objects.filter(summary=newest(compacted))).delete()
    assert found() == {"R7.call"}


def test_audit_finds_a_summary_whose_only_call_failed(compacted):
    ModelCall.objects.filter(summary=newest(compacted)).update(error="timeout")
    assert found() == {"R7.call"}


def test_audit_finds_an_ancestor_outside_the_range(compacted):
    first, second = compacted.summaries.order_by("first_seq")
    second.folded_from.add(first)
    assert found() == {"R7.ancestor"}


def test_audit_finds_a_later_version_as_an_ancestor(compacted):
    third = summarise(compacted, 5, 8, status=Status.SUPERSEDED)
    newest_active = compacted.summaries.get(version=2)
    newest_active.folded_from.add(third)
    assert found() == {"R7.ancestor"}


def test_audit_finds_an_ancestor_in_another_conversation(compacted, bob):
    other = transcript.create_conversation(bob)
    talk(other, 4)
    copied = summarise(other, 1, 4)
    copied.folded_from.add(compacted.summaries.first())
    violations = [v for v in audit.check_memory() if v.code == "R7.ancestor"]
    assert [v.conversation_id for v in violations] == [other.pk]


def test_audit_finds_a_reply_without_a_request(compacted):
    unguarded(compacted.model_calls.filter(message__seq=2)).delete()
    (violation,) = audit.check_memory()
    assert violation.code == "R8.call"
    assert violation.detail == "reply #2 has no recorded request"


def test_audit_finds_calls_of_another_conversation(compacted, bob):
    other = transcript.create_conversation(bob)
    plant(compacted.model_calls.get(message__seq=2), conversation=other)
    assert "R8.foreign" in found()


def test_audit_finds_a_changed_message_by_the_hash(compacted):
    plant(compacted.messages.get(seq=1), text="Something else")
    violations = list(audit.check_memory())
    assert {violation.code for violation in violations} == {
        "R8.hash",
        "signature.message",
    }
    assert len(violations) == 6  # until the compaction the model saw it at every turn


def test_audit_finds_a_changed_summary_by_the_hash(compacted):
    plant(newest(compacted), text="Something else")
    assert found() == {"R8.hash", "signature.summary"}


def test_audit_can_skip_the_hashes(compacted):
    plant(compacted.messages.get(seq=1), text="Something else")
    assert list(audit.check_memory(hashes=False)) == []


@pytest.mark.parametrize("refs", [{}, [], {"system": 5}, "text", 7])
def test_audit_survives_broken_references(compacted, refs):
    call = compacted.model_calls.filter(purpose="reply").first()
    plant(call, refs=refs)
    assert found() == {"R8.refs", "signature.call"}


@pytest.mark.parametrize("policy", [{"preset": "none\nsuch"}, {"keep": 3}, []])
def test_audit_finds_an_invalid_policy(conversation, policy):
    plant(conversation, policy=policy)
    (violation,) = audit.check_memory()
    assert violation.code == "policy"
    assert "\n" not in str(violation)


def test_audit_finds_two_messages_with_one_number(conversation):
    drop_unique(Message, "message_seq_unique", "message_client_id_unique")
    _insert(conversation, pk=1, seq=1, client_id="a")
    _insert(conversation, pk=2, seq=1, client_id="b")
    assert "R6.seq" in found()


def test_audit_finds_two_messages_with_one_client_id(conversation):
    drop_unique(Message, "message_seq_unique", "message_client_id_unique")
    _insert(conversation, pk=1, seq=1, client_id="a")
    _insert(conversation, pk=2, seq=3, client_id="a")
    assert "R2.client_id" in found()


def _insert(conversation, **values):
    conversation.next_seq = 9
    conversation.save(update_fields=["next_seq"])
    Message.objects.create(
        conversation=conversation, role="user", text="x", tokens=1, **values
    )


def test_audit_finds_two_summaries_with_one_version(compacted):
    drop_unique(Summary, "summary_version_unique")
    plant(newest(compacted), version=1)
    assert "R6.version" in found()


def test_audit_needs_few_queries_for_any_amount_of_data(
    alice, django_assert_max_num_queries
):
    for _ in range(3):
        conversation = transcript.create_conversation(alice)
        talk(conversation, 6)
        summarise(conversation, 1, 8)
    with django_assert_max_num_queries(19):
        assert list(audit.check_memory(hashes=False)) == []
