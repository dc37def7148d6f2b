"""The file of evidence: its form, its account, its request, and who gets it."""

import json
import re
from datetime import datetime
from uuid import UUID

import pytest
from django.db.models import QuerySet

from chatsite.review.models import AccessEvent
from memory import actions, transcript
from memory.models import Message
from tests.memory.scenes import summarise

from ...scenes import Use, menu_of, signed_in, talk_in_turns, use_tools

pytestmark = pytest.mark.django_db


def count_places(evidence):
    counts = evidence.own["account"]
    assert sum(counts.values()) == evidence.own["messages"]
    return counts


class TestAccount:
    def test_new_conversation_has_no_message(self, alice, download):
        evidence = download(transcript.create_conversation(alice, title="New"))
        is_right, text = evidence.check()
        assert is_right, text
        assert text.endswith("0 of 0 messages accounted for: none")

    def test_every_message_has_a_place(self, source, download):
        evidence = download(source)
        numbers = [*source.messages.order_by("seq").values_list("seq", flat=True)]
        assert [*evidence.places] == numbers
        is_right, text = evidence.check()
        assert is_right, text
        total = len(numbers)
        assert f"{total} of {total} messages accounted for" in text
        assert count_places(evidence)["owner"] == 4

    def test_summary_has_the_messages_that_it_read(self, conversation, download):
        talk_in_turns(conversation, "Three", "Four")
        actions.exclude_messages(conversation, [2])
        summarise(conversation, 1, 4)
        evidence = download(conversation)
        assert evidence.places[1] == "summary"
        assert evidence.places[2] == "owner"
        (summary,) = evidence.file["analysis"]
        assert summary["dialog"] == [0, 2, 3]
        assert "in one summary" in evidence.check()[1]

    def test_deleted_message_is_erased_from_the_file(self, conversation, download):
        talk_in_turns(conversation, "My secret is xyzzy", reply="Noted.")
        before = download(conversation)
        actions.delete_message(conversation, 5)
        after = download(conversation)
        assert b"xyzzy" in before.data
        assert b"xyzzy" not in after.data
        assert after.places[5] == "erased"
        assert before.check()[0]
        assert "1 erased" in after.check()[1]

    def test_account_of_a_reply_stops_before_it(self, conversation, download):
        talk_in_turns(conversation, "Three")
        evidence = download(conversation, "?reply=4")
        assert evidence.places == {1: "sent", 2: "sent", 3: "sent", 4: "reply"}
        assert "3 of 3 messages accounted for: 3 sent" in evidence.check()[1]

    def test_request_that_is_still_to_come_is_to_be_sent(self, conversation, download):
        evidence = download(conversation)
        assert evidence.own["request"]["kind"] == "next"
        assert re.search(r"for: \d+ to be sent$", evidence.check()[1])

    def test_hidden_since_counts_as_sent(self, conversation, download):
        actions.exclude_messages(conversation, [1])
        assert download(conversation, "?reply=4").places[1] == "sent"
        assert download(conversation).places[1] == "owner"

    def test_calls_of_tools_have_a_place(self, conversation, download):
        use_tools(conversation, "Search", Use(), Use())
        evidence = download(conversation)
        assert evidence.check()[0]
        assert set(evidence.places.values()) == {"sent"}
        roles = [each["windowpane"]["role"] for each in evidence.file["dialog"]]
        assert roles.count(Message.Role.TOOL) == 2


class TestRequest:
    def test_request_of_a_reply_rebuilds_to_the_recorded_hash(
        self, conversation, download
    ):
        evidence = download(conversation, "?reply=4")
        call = conversation.model_calls.get(message__seq=4)
        request = evidence.own["request"]
        assert request["sha256"] == call.sha256
        assert json.loads("".join(request["body"]))[-1]["content"] == (
            "What is my budget?"
        )
        assert "the request rebuilds to its hash" in evidence.check()[1]

    def test_request_of_an_erased_message_is_not_rebuilt(self, conversation, download):
        actions.delete_message(conversation, 1)
        evidence = download(conversation, "?reply=4")
        is_right, text = evidence.check()
        assert is_right
        assert "the request is not rebuilt: a part of it was erased" in text
        assert evidence.own["request"]["body"] == []

    def test_system_prompt_is_in_the_file(self, source, download):
        assert download(source).own["sections"]["system"] == "Be brief."

    def test_number_of_no_reply_is_not_found(self, conversation, download):
        assert download(conversation, "?reply=3").answer.status_code == 404
        assert download(conversation, "?reply=99").answer.status_code == 404


class TestForm:
    """The unsigned form follows the draft of vCon."""

    def test_file_has_the_fields_of_a_vcon(self, source, download):
        summarise(source, 1, 4)
        file = download(source).file
        assert file["vcon"] == "0.4.0"
        assert UUID(file["uuid"]).version == 8
        assert datetime.fromisoformat(file["created_at"]).utcoffset() is not None
        assert file["extensions"] == ["windowpane"]
        assert all(isinstance(party["name"], str) for party in file["parties"])
        for each in file["dialog"]:
            assert (each["type"], each["encoding"]) == ("text", "none")
            assert datetime.fromisoformat(each["start"])
            assert {*each["parties"]} <= {0, 1}
        assert file["analysis"]
        for each in file["analysis"]:
            assert isinstance(each["type"], str)
            assert isinstance(each["vendor"], str)
            assert {*each["dialog"]} <= {*range(len(file["dialog"]))}

    def test_reply_with_unreadable_references_is_not_found(
        self, conversation, download
    ):
        call = conversation.model_calls.get(message__seq=4)
        QuerySet(type(call)).filter(pk=call.pk).update(refs={"window": "?"})
        assert download(conversation, "?reply=4").answer.status_code == 404


class TestReaders:
    def test_stranger_gets_nothing(self, conversation, bob):
        address = f"/c/{conversation.uuid}/evidence.json"
        assert signed_in(bob).get(address).status_code == 404

    def test_staff_need_both_rights(self, conversation, staff_with):
        address = f"/c/{conversation.uuid}/evidence.json"
        for rights in (["metadata"], ["metadata", "content"], ["metadata", "export"]):
            assert signed_in(staff_with(*rights)).get(address).status_code == 404
        assert not AccessEvent.objects.exists()
        staff = signed_in(staff_with("metadata", "content", "export"))
        assert staff.get(f"{address}?reply=4").status_code == 200
        event = AccessEvent.objects.get()
        assert (event.action, event.target) == ("prove", "evidence #4")
        assert event.conversation == conversation.uuid

    def test_downloads_are_limited(self, conversation, alice, settings):
        settings.EVIDENCE_PER_MINUTE = 2
        client = signed_in(alice)
        address = f"/c/{conversation.uuid}/evidence.json"
        codes = [client.get(address).status_code for _ in range(3)]
        assert codes == [200, 200, 429]

    def test_menus_have_the_download(self, conversation, alice):
        page = signed_in(alice).get(f"/c/{conversation.uuid}/").content.decode()
        assert f'href="/c/{conversation.uuid}/evidence.zip"' in page
        menu = menu_of(signed_in(alice), conversation, 4)
        assert f'href="/c/{conversation.uuid}/evidence.zip?reply=4"' in menu
