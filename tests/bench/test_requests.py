"""Requests to summarise, in the form of each system, are read for what they hold."""

import json

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import get_buffer_string

from bench.memory.ledger import Ledger
from bench.memory.models import SummaryRequest
from bench.memory.requests import read_request

SAID = [HumanMessage("I like <tea> & rain.", id="1"), AIMessage("Noted.", id="2")]


def as_xml(messages):
    quoted = get_buffer_string(messages, format="xml")
    return [HumanMessage(f"Sum this up.\n<messages>\n{quoted}\n</messages>")]


def texts(request):
    return [said.text for said in read_request(request).messages]


class TestReading:
    def test_reader_unescapes_xml(self):
        assert texts(as_xml(SAID)) == ["I like <tea> & rain.", "Noted."]

    def test_reader_finds_a_summary_among_messages(self):
        earlier = "Here is a summary of the conversation to date:\n\nThey met."
        material = read_request(as_xml([HumanMessage(earlier), *SAID]))
        assert material.earlier == ["They met."]
        assert len(material.messages) == 2

    def test_reader_finds_a_summary_with_a_pointer_to_a_file(self):
        earlier = (
            "You are in the middle of a conversation that has been summarized.\n\n"
            "Saved to a file.\n\n<summary>\nThey met.\n</summary>"
        )
        assert read_request(as_xml([HumanMessage(earlier)])).earlier == ["They met."]

    def test_reader_finds_messages_before_an_instruction(self):
        instruction = "Create a summary of the conversation above:"
        assert texts([*SAID, HumanMessage(instruction)]) == [m.text for m in SAID]

    def test_reader_finds_the_summary_in_an_instruction(self):
        instruction = (
            "This is summary of the conversation so far: They met.\nTwice.\n\n"
            "Extend this summary by taking into account the new messages above:"
        )
        material = read_request([*SAID, HumanMessage(instruction)])
        assert material.earlier == ["They met.\nTwice."]
        assert len(material.messages) == 2

    def test_reader_reads_the_projects_own_form(self):
        document = {
            "previous_summary": "They met.",
            "messages": [{"n": 7, "role": "user", "text": "Hi.", "part": "1/2"}],
        }
        marker = SystemMessage("[windowpane:summarise]\nSum up.")
        material = read_request([marker, HumanMessage(json.dumps(document))])
        assert material.earlier == ["They met."]
        assert (material.messages[0].id, material.messages[0].part) == ("7", "1/2")


class TestLedger:
    def ledger(self):
        ledger = Ledger()
        for message in SAID:
            ledger.add(message)
        return ledger

    def test_a_summary_carries_what_its_request_held_whole(self):
        ledger = self.ledger()
        ledger.read(SummaryRequest(as_xml(SAID), "Tea."))
        assert ledger.carried_by(["x Tea. x"]) == {"1": 1, "2": 1}

    def test_a_message_cut_short_was_not_read(self):
        ledger = self.ledger()
        ledger.read(
            SummaryRequest(as_xml([HumanMessage("I like <tea>"), SAID[1]]), "Tea.")
        )
        assert not ledger.was_read("1")
        assert ledger.carried_by(["Tea."]) == {"2": 1}

    def test_a_summary_quoted_in_the_next_is_written_once_more(self):
        ledger = self.ledger()
        ledger.read(SummaryRequest(as_xml(SAID), "Tea."))
        ledger.read(SummaryRequest(as_xml([HumanMessage("Tea.")]), "Still that."))
        assert ledger.carried_by(["Still that."]) == {"1": 2, "2": 2}

    def test_a_summary_left_out_of_the_next_carries_nothing_on(self):
        ledger = self.ledger()
        ledger.read(SummaryRequest(as_xml(SAID), "Tea."))
        ledger.read(SummaryRequest(as_xml([HumanMessage("Else.")]), "Something else."))
        assert ledger.carried_by(["Something else."]) == {}

    def test_parts_of_a_long_message_make_it_whole(self):
        ledger = self.ledger()
        marker = SystemMessage("[windowpane:summarise]")
        for part, text in (("1/2", "I like "), ("2/2", "<tea> & rain.")):
            said = {"n": 1, "role": "user", "text": text, "part": part}
            request = [marker, HumanMessage(json.dumps({"messages": [said]}))]
            assert not ledger.was_read("1")
            ledger.read(SummaryRequest(request, "Tea."))
        assert ledger.was_read("1")
