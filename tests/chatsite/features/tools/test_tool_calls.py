"""The tables of tools: what a call keeps, and a turn that waits for consent."""

from pathlib import Path

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from langchain_core.messages.tool import tool_call_chunk

from chatsite.features import tools
from chatsite.features.tools.models import ToolCall, digest_of
from chatsite.features.tools.tool_loop import answers, call_requests, records
from chatsite.turns import commands, lifecycle, limits
from chatsite.turns.models import Turn
from memory import transcript
from memory.integrity import signatures
from memory.models import Message

from ...scenes import submit
from . import calls

pytestmark = pytest.mark.django_db

State = Turn.State


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice)


@pytest.fixture
def turn(conversation):
    return submit(conversation).turn


def asking(turn):
    """The turn, as it waits for consent."""
    Turn.objects.filter(pk=turn.pk).update(state=State.WAITING)
    turn.refresh_from_db()
    return turn


class TestSentText:
    @pytest.fixture
    def result(self, conversation):
        return Message.objects.create(
            conversation=conversation,
            seq=9,
            role=Message.Role.TOOL,
            text="All of it",
            sent_text="Some of it",
            tool_call_id="call-1",
            tokens=3,
        )

    def test_a_model_gets_it_in_place_of_the_text(self, result):
        assert result.to_langchain().content == "Some of it"
        result.sent_text = ""
        assert result.to_langchain().content == "All of it"

    def test_sent_text_is_signed(self, result):
        assert signatures.has_valid_signature(result)
        result.sent_text = "Something else"
        assert not signatures.has_valid_signature(result)

    def test_sent_text_is_erased_with_the_text(self, conversation, result):
        rows = conversation.messages.filter(pk=result.pk)
        with pytest.raises(TypeError, match="sent_text"):
            rows.update(sent_text="")
        rows.update(**Message.ERASED, deleted_at=Now())
        assert rows.get().sent_text == ""


class TestToolCall:
    @pytest.fixture
    def values(self, conversation, turn):
        request = transcript.append_reply(conversation, seq=2, text="Let me look.")
        call = {"conversation": conversation, "turn": turn, "call_id": "c"}
        return {**call, "request": request}

    def test_digest_is_of_the_tool_and_its_arguments(self, values):
        arguments = {"city": "Zürich", "days": 3}
        call = ToolCall.objects.create(
            **values, place=0, name="weather", arguments=arguments
        )
        assert call.digest == digest_of("weather", {"days": 3, "city": "Zürich"})
        assert call.digest != digest_of("weather", {"days": 4, "city": "Zürich"})
        assert call.digest != digest_of("climate", arguments)

    def test_each_has_a_place_of_its_own(self, values):
        for place in range(2):
            ToolCall.objects.create(**values, place=place, name="weather")
        with pytest.raises(IntegrityError), transaction.atomic():
            ToolCall.objects.create(**values, place=1, name="weather")
        keys = ToolCall.objects.values_list("idempotency_key", flat=True)
        assert len(set(keys)) == 2


class TestWaitingForConsent:
    def test_waiting_turn_and_later_ones_are_not_claimed(self, conversation, turn):
        asking(turn)
        submit(conversation, "And then?")
        assert lifecycle.due() == []
        assert lifecycle.next_claim(conversation.pk) == ([], None)
        assert not turn.is_finished

    def test_answer_lets_the_turn_run(self, conversation, turn):
        asking(turn)
        Turn.objects.filter(pk=turn.pk).update(state=State.QUEUED)
        assert lifecycle.due() == [conversation.pk]
        assert lifecycle.claim(conversation.pk).row_id == turn.pk

    def test_waiting_turn_can_be_stopped_at_once(self, conversation, turn):
        assert commands.stop_turn(conversation, asking(turn).pk).state == State.STOPPED

    def test_waiting_turn_takes_no_slot_of_its_owner(self, alice, turn, settings):
        settings.TURNS_PER_USER = 1
        asking(turn)
        other = transcript.create_conversation(alice)
        assert limits.next_waiting(other.pk) == []
        sent = commands.send_message(other, text="Hello", client_id="x")
        assert sent.claim is not None


class TestArgumentsOfACutReply:
    @pytest.mark.parametrize(
        ("text", "arguments"),
        [
            ('{"city": "Os', {"city": "Os"}),
            ('{"city": "Oslo", "da', {"city": "Oslo"}),
            ('{"city": {"name": ["Os', {"city": {"name": ["Os"]}}),
            ("", {}),
            ("{", {}),
            ('["Os', {}),
            ("}{", {}),
            ('{"city": "' + "x" * 2_000, {}),
            ('{"n": ' + "[" * 600, {}),
            ('{"n": NaN, "m": "', {}),
        ],
    )
    def test_arguments_that_have_come_are_shown(self, text, arguments):
        chunk = tool_call_chunk(name="look_up", args=text, id="one", index=0)
        (call,) = call_requests.read([chunk], 9, is_cut=True)
        assert call.arguments == arguments

    def test_arguments_of_a_whole_reply_are_not_guessed(self):
        chunk = tool_call_chunk(name="look_up", args='{"city": "Os', id="o", index=0)
        (call,) = call_requests.read([chunk], 9)
        assert (call.arguments, call.error) == ({}, "bad_arguments")


class TestManyAtOnce:
    """One user's calls are answered in one piece of work that others wait for."""

    MANY = 60

    @pytest.fixture
    def count(self, alice):
        """count(work, calls) -> the statements of work(claim, calls), and what came."""

        def run(work, number):
            made = calls.create(alice)
            claim, asked = calls.ask(made, *[("look_up", {})] * number)
            with CaptureQueriesContext(connection) as found:
                result = work(claim, asked)
            return len(found), made, result

        return run

    @staticmethod
    def cut_off(claim, asked):
        turn = lifecycle.lock_held(claim)
        with transaction.atomic():
            return answers.close_calls(turn)

    @staticmethod
    def settle(claim, asked):
        return records.settle(claim, 0).answered

    @pytest.mark.parametrize("work", ["cut_off", "settle"])
    def test_a_hundred_answers_take_as_many_statements_as_two(self, count, work):
        few, _, _ = count(getattr(self, work), 2)
        many, made, closed = count(getattr(self, work), self.MANY)
        assert many <= few + 2
        results = made.messages.filter(role=Message.Role.TOOL).order_by("seq")
        assert [call.result for call in closed] == list(results)
        assert [row.tool_call_id for row in results] == [c.call_id for c in closed]
        assert len(closed) == self.MANY
        assert all(map(signatures.has_valid_signature, results))
        first = results[0]
        assert first.tokens
        assert first.recall_entry.seq == first.seq
        assert all(call.finished_at for call in closed)
        # The reply that follows has the next number.
        turn = made.turns.get()
        assert turn.reply_seq == results[self.MANY - 1].seq + 1
        assert [row.seq for row in results] == list(
            range(first.seq, first.seq + self.MANY)
        )

    def test_few_are_kept_of_a_reply_that_was_cut_off(self, alice):
        """The statements are those of two calls, however many there were."""
        statements = {}
        for number in (2, 90):
            made = calls.create(alice)
            submit(made)
            claim = calls.claim_next(made)
            chunks = [
                tool_call_chunk(name="look_up", args="", id=f"c{n}", index=n)
                for n in range(number)
            ]
            result = lifecycle.TurnResult(State.TRUNCATED, "", calls=chunks)
            wanted = call_requests.read(chunks, number, is_cut=True)
            with CaptureQueriesContext(connection) as found:
                _, kept = records.keep_cut_off(claim, result, wanted)
            statements[number] = len(found)
            results = made.messages.filter(role=Message.Role.TOOL).order_by("seq")
            texts = [answers.CUT_OFF] * min(number, call_requests.MAX_CUT_OFF)
            if number > len(texts):
                more = number - len(texts)
                texts[-1] += f" {more} more calls of the reply were not kept."
            assert [row.text for row in results] == texts
            assert {call.state for call in kept} == {ToolCall.State.CANCELLED}
            assert made.tool_calls.count() == len(texts)
        assert statements[90] <= statements[2] + 2 <= 35

    def test_messages_stay_before_the_next_message(self, alice):
        made = calls.create(alice)
        claim, _ = calls.ask(made, *[("look_up", {})] * 20)
        following = submit(made, "And then?").turn.user_message.seq
        with transaction.atomic():
            turn = lifecycle.lock_held(claim)
            answers.close_calls(turn)
        results = made.messages.filter(role=Message.Role.TOOL)
        assert results.count() == 20
        assert max(row.seq for row in results) < turn.reply_seq < following

    def test_calls_without_room_are_not_stored(self, alice):
        made = calls.create(alice)
        claim, asked = calls.ask(made, *[("look_up", {})] * 3)
        submit(made, "And then?")
        turn = lifecycle.lock_held(claim)
        answer = answers.CallAnswer(ToolCall.State.CANCELLED, answers.NOT_RUN)
        crowd = [(call, answer) for call in asked * 40]
        with pytest.raises(answers.NoRoomError):
            answers.store_all(turn, crowd)
        assert not made.messages.filter(role=Message.Role.TOOL).exists()


def test_end_calls_is_the_one_function_that_ends_calls():
    """The function that ends a call writes the time of its end; no other one does."""
    paths = Path(tools.__file__).parent.rglob("*.py")
    writers = [path.name for path in paths if "finished_at=Now" in path.read_text()]
    assert writers == ["ending.py"]
