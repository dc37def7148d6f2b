"""Requests that a client sends beside a conversation, such as for a title.

They have its history, but the instructions and tools of another agent.
"""

import pytest

from bench.endpoint.wires import Call, Said
from chatsite.contrib.endpoint.identity.similarity import share_little

from .clients import LONG, Client, reply, system, user

CODER = "You are a coding agent. Edit files with your tools, and run the tests. " * 9
KEEPER = "Find out what is worth knowing of the person for later, as short notes. " * 9
CALL = Said("assistant", calls=(Call("c1", "write_note", "{}"),))
FUNCTION = {"name": "write_note", "arguments": "{}"}
CALLED = reply("", tool_calls=[{"id": "c1", "type": "function", "function": FUNCTION}])
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "It is written."}
SUMMARY = user("Summary of what came before: the tests fail in one place.")


def tools(*names):
    return [{"type": "function", "function": {"name": name}} for name in names]


EDIT, NOTE = tools("edit", "shell"), tools("write_note")


class Coder(Client):
    """Keeps its history, and asks beside it."""

    def __init__(self):
        super().__init__()
        self.history = []

    def ask(self, text, answer, *, instructions=CODER, offered=EDIT):
        self.history.append(user(text))
        sent = [system(instructions), *self.history]
        made = self.send(*sent, answer=answer, tools=offered)
        self.history.append(reply(answer))
        return made

    def ask_beside(self, text="Which notes?", *, instructions=KEEPER, offered=NOTE):
        messages = [system(instructions)] if instructions else []
        sent = [*messages, *self.history, user(text)]
        return self.send(*sent, answer="None.", tools=offered)


def is_single(client, answer):
    return client.store.conversations[answer.conversation].is_single


def test_a_conversation_stays_one_with_a_side_call_after_each_turn():
    client = Coder()
    for number in range(6):
        made = client.ask(f"Question {number}", f"{LONG} {number}")
        assert made.conversation == "c0"
        beside = client.ask_beside()
        assert (beside.lineage, beside.parent) == ("branch", "c0")
        assert beside.why == ("side",)
        assert is_single(client, beside)


def test_a_side_call_is_single_until_a_question_follows():
    client = Coder()
    client.ask("Why does it fail?", LONG)
    sent = [system(KEEPER), *client.history, user("Which notes?")]
    beside = client.send(*sent, answer=CALL, tools=NOTE)
    sent += [CALLED, RESULT]
    results = client.send(*sent, answer="Written.", tools=NOTE)
    assert (results.lineage, results.conversation) == ("continued", beside.conversation)
    assert is_single(client, results)
    again = client.send(*sent, reply("Written."), user("More?"), tools=NOTE)
    assert (again.lineage, again.conversation) == ("continued", beside.conversation)
    assert not is_single(client, again)


def test_repeated_side_call_is_single():
    client = Coder()
    client.ask("Why does it fail?", LONG)
    client.ask_beside()
    client.ask("Mend it.", f"{LONG} mended")
    client.history = client.history[:2]
    again = client.ask_beside()
    assert (again.lineage, again.why) == ("branch", ("whole",))
    assert is_single(client, again)


def test_a_late_side_call_is_a_side_call():
    client = Coder()
    client.ask("Why does it fail?", LONG)
    earlier = [*client.history]
    client.ask("Mend it.", f"{LONG} mended")
    late = [system(KEEPER), *earlier, user("Which notes?")]
    answer = client.send(*late, tools=NOTE)
    assert (answer.lineage, answer.parent, answer.why) == ("branch", "c0", ("side",))
    assert is_single(client, answer)


def wrap(text):
    return reply(f"<details>It took a second.</details>\n{text}")


def test_a_summary_after_a_side_call_with_wrapped_replies_goes_on():
    """The client sends "OK." in the form in which only its side call has it."""
    client = Coder()
    client.ask("Why does it fail in the parser of the second module?", LONG)
    client.ask("Say so where nothing of it is new to you.", "OK.")
    client.history = [*client.history[:1], wrap(LONG), client.history[2], wrap("OK.")]
    assert client.ask_beside().why == ("side",)
    told = [SUMMARY, reply("Got it."), *client.history[2:], user("And in the first?")]
    answer = client.send(system(CODER), *told, tools=EDIT)
    assert answer.conversation == "c0"


def test_an_agent_that_takes_over_with_a_result_goes_on():
    client = Coder()
    client.send(system(CODER), user("Hello"), answer=CALL, tools=EDIT)
    sent = [system(KEEPER), user("Hello"), CALLED, RESULT]
    assert client.send(*sent, tools=NOTE).lineage == "continued"


@pytest.mark.parametrize("stamp", ["", "It is {}:40. "])
def test_agents_that_hand_over_to_each_other_keep_one_conversation(stamp):
    client, said = Coder(), []
    for turn in range(4):
        said += [user(f"Question {turn}?")]
        coder = system(stamp.format(turn) + CODER)
        client.send(coder, *said, answer=CALL, tools=EDIT)
        said += [CALLED, RESULT]
        answer = client.send(system(KEEPER), *said, answer=f"{turn} {LONG}", tools=NOTE)
        assert answer.conversation == "c0"
        said += [reply(f"{turn} {LONG}")]
    assert [*client.store.conversations] == ["c0"]


def test_a_retry_beside_a_side_call_that_failed_is_of_the_turn():
    client = Coder()
    client.ask("Why does it fail?", LONG)
    sent = [*client.history, user("Mend it.")]
    asked = client.send(system(CODER), *sent, answer=None, tools=EDIT)
    client.send(system(KEEPER), *sent, answer=None, tools=NOTE)
    again = client.send(system(CODER), *sent, answer=LONG, tools=EDIT)
    assert (asked.conversation, again.conversation) == ("c0", "c0")
    assert again.lineage == "retry"


def test_a_hint_that_the_client_has_compacted_is_believed():
    client = Coder()
    client.headers = {"x-claude-code-session-id": "one"}
    client.ask("Why does it fail?", LONG)
    client.ask("Mend it.", f"{LONG} mended")
    sent = [system(KEEPER), SUMMARY, user("And now?")]
    headers = {"x-claude-code-context-compacted": "1"}
    answer = client.send(*sent, tools=NOTE, headers=headers)
    assert (answer.lineage, answer.conversation) == ("client-compacted", "c0")


@pytest.mark.parametrize(
    ("instructions", "offered"),
    [
        # Instructions that are mostly the same, with other tools: a plan, a clock.
        (f"It is noon. {CODER} Only plan: change nothing.", NOTE),
        (CODER, NOTE),
        # The same tools, or no instructions.
        (KEEPER, EDIT),
        ("", NOTE),
    ],
)
def test_a_turn_of_the_same_agent_goes_on(instructions, offered):
    client = Coder()
    client.ask("Why does it fail?", LONG)
    made = client.ask_beside(instructions=instructions, offered=offered)
    assert (made.lineage, made.conversation) == ("continued", "c0")


def test_a_conversation_without_instructions_has_no_side_calls():
    client = Client()
    client.send(user("Hello"), answer=LONG)
    sent = [system(KEEPER), user("Hello"), reply(LONG), user("Which notes?")]
    assert client.send(*sent, tools=NOTE).lineage == "continued"


@pytest.mark.parametrize(
    ("one", "other", "is_little"),
    [
        (CODER, KEEPER, True),
        ("Be brief.", CODER, True),
        # A page of other words before, in and behind the same ones.
        (f"Now {KEEPER}{CODER}{CODER}", f"At noon {CODER}: {CODER} (end)", False),
        ("x" * 3_000 + CODER * 9, "y" * 3_000 + CODER * 9, False),
        ("", CODER, True),
    ],
)
def test_instructions_share_little_or_most(one, other, is_little):
    assert share_little(one, other) is is_little
    assert share_little(other, one) is is_little
