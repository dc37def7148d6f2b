"""Agents that make the same calls and find the same, and that reword their question
in each request: nothing but that question says which is which."""

from itertools import count

import pytest

from bench.endpoint.in_memory import MemoryTarget
from bench.endpoint.wires import Call, Request, Said, write_body

from .clients import LONG, Client, reply, user

CALLS = [("list_files", "{}"), ("read_file", '{"path": "README.md"}')]
FOUND = ["README.md src tests", "This package says what the weather is."]
WIRES = ("chat", "messages", "responses")
HEADER = "x-windowpane-client-conversation"
numbers = count()


def reword(question):
    """Return the text with other pages that were found for it."""
    number = next(numbers)
    found = " ".join(f"page{number}-{line} says {number * line}" for line in range(9))
    return f"Use what was found.\n{found}\n\nThe question is this: {question}"


class Agent:
    def __init__(self, target, wire, question, name="", reword=reword):
        self.target, self.wire, self.question = target, wire, question
        self.headers = {HEADER: name} if name else {}
        self.reword = reword
        self.later = []

    def ask(self, reply):
        history = [Said("user", self.reword(self.question)), *self.later]
        body = write_body(self.wire, "You are an agent.", history, "m")
        answer = self.target.send(1, Request(self.wire, body, self.headers), reply)
        self.later.append(reply)
        return answer

    def call(self, number):
        name, arguments = CALLS[number]
        return self.ask(Said("assistant", calls=(Call(f"c{number}", name, arguments),)))

    def find(self, number):
        self.later.append(Said("tool", results=((f"c{number}", FOUND[number]),)))

    def work(self):
        """Two rounds of calls, and what it says of them."""
        yield self.call(0)
        self.find(0)
        yield self.call(1)
        self.find(1)
        yield self.ask(Said("assistant", "Done."))


@pytest.fixture
def target():
    return MemoryTarget()


@pytest.mark.parametrize("names", [("", ""), ("one", "other")])
@pytest.mark.parametrize("wire", WIRES)
def test_two_agents_at_once_keep_to_their_own(target, wire, names):
    agents = [
        Agent(target, wire, "Which of the tests are slow?", names[0]),
        Agent(target, wire, "Who has written the parser?", names[1]),
    ]
    for one, other in zip(agents[0].work(), agents[1].work(), strict=True):
        assert (one.conversation, other.conversation) == ("c0", "c1")


@pytest.mark.parametrize("wire", WIRES)
def test_a_second_agent_goes_on_no_finished_one(target, wire):
    first = Agent(target, wire, "Which of the tests are slow?")
    assert {each.conversation for each in first.work()} == {"c0"}
    second = Agent(target, wire, "Who has written the parser?")
    assert {each.conversation for each in second.work()} == {"c1"}


def test_a_question_in_wholly_other_words_is_followed_by_its_id(target):
    words = iter(
        f"{word} " * 9 for word in ("sea", "hill", "fog", "rain", "dune", "oak")
    )
    agents = [
        Agent(target, "chat", "", name, lambda _question: next(words))
        for name in ("one", "other")
    ]
    for one, other in zip(agents[0].work(), agents[1].work(), strict=True):
        assert (one.conversation, other.conversation) == ("c0", "c1")


def test_text_found_for_both_questions_identifies_neither(target):
    """The page that is found for the second question now was found for the first."""
    shared = "A page on trains, found for both of the questions at different times."
    pages = iter((shared, "A page on boats.", shared))
    ask = "{}\n\nThe question is this: {}"

    def reword_once(question):
        return ask.format(next(pages), question)

    first = Agent(target, "chat", "Which tests are slow?", reword=reword_once)
    second = Agent(target, "chat", "Who wrote the parser?", reword=reword_once)
    assert first.call(0).conversation == "c0"
    assert second.call(0).conversation == "c1"
    second.find(0)
    assert second.call(1).conversation != "c0"


def test_an_agent_whose_conversation_is_gone_begins_another(target):
    first = Agent(target, "chat", "Which of the tests are slow?")
    second = Agent(target, "chat", "Who has written the parser?")
    first.call(0)
    gone = second.call(0)
    target.stores[1].delete(gone.conversation)
    second.find(0)
    assert second.call(1).lineage == "new"


REMINDER = user("<reminder>Keep your answers short.</reminder>")
ASKS = [user(f"Look into the repository: {each}") for each in ("who?", "how slow?")]


@pytest.mark.parametrize("turns", [1, 12])
@pytest.mark.parametrize("name", ["", "one"])
def test_an_edited_question_is_not_the_first_in_other_words(name, turns):
    """Both begin alike and have the same reply, and the client's reminder is at the
    end of each request alone."""
    client = Client(**({HEADER.replace("-", "_"): name} if name else {}))
    said = []
    for turn in range(turns):
        said += [user(f"What does part {turn} do?")]
        client.send(*said, REMINDER, answer=f"{turn} {LONG}")
        said += [reply(f"{turn} {LONG}")]
    assert client.send(*said, ASKS[0], REMINDER).conversation == "c0"
    edited = client.send(*said, ASKS[1], REMINDER)
    assert edited.lineage == "branch"
    said += [ASKS[1], reply("Yes.")]
    for question in ("And then?", "And before?"):
        answer = client.send(*said, user(question), REMINDER, answer=LONG)
        assert answer.conversation == edited.conversation or answer.lineage == "branch"
    assert client.store.conversations["c0"].texts[-1] == "Yes."


@pytest.mark.parametrize("name", ["", "one"])
def test_the_second_of_two_same_branches_goes_on_where_it_ends(name):
    client = Client(**({HEADER.replace("-", "_"): name} if name else {}))
    said = [user("Which of the tests are slow?")]
    client.send(*said, answer=LONG)
    said += [reply(LONG), user("Is it this one?")]
    for _ in range(2):
        client.send(*said)
    said += [reply("Yes."), user("Mend it.")]
    answers = [client.send(*said, answer="Done.") for _ in range(2)]
    assert {each.conversation for each in answers} == {"c0", "c1"}
    assert {each.lineage for each in answers} == {"continued"}


def test_a_side_call_that_knows_the_reply_changed_leads_nowhere():
    """The client wraps replies before it sends them, first with its side call."""
    client = Client()
    tools = [
        {"type": "function", "function": {"name": each}} for each in ("ls", "note")
    ]
    instructs = {"role": "system", "content": "You are a coding agent with tools."}
    keeper = {"role": "system", "content": "List what is worth keeping of all this."}
    client.send(instructs, user("Which tests?"), answer=LONG, tools=tools[:1])
    said = [user("Which tests?"), reply(f"<details>thought</details>\n{LONG}")]
    aside = client.send(keeper, *said, user("Which notes?"), tools=tools[1:])
    assert aside.lineage == "branch"
    answer = client.send(instructs, *said, user("And the slow?"), tools=tools[:1])
    assert (answer.conversation, answer.lineage) == ("c0", "continued")


@pytest.mark.parametrize("wire", WIRES)
def test_a_summary_in_place_of_as_many_messages_goes_on(target, wire):
    """The summary has a reply of the client's own, and the question after it has new
    words.
    """
    agent = Agent(
        target, wire, "Which of the tests are slow?", reword=lambda each: each
    )
    agent.later = [Said("assistant", "Good day."), Said("user", reword(agent.question))]
    agent.question = "Hello"
    assert agent.call(0).conversation == "c0"
    agent.find(0)
    agent.later[:2] = [
        Said("assistant", "Understood."),
        Said("user", reword("Which of the tests are slow?")),
    ]
    agent.question = "Summary: they said hello."
    assert agent.call(1).conversation == "c0"


def test_a_summary_that_others_have_is_no_sign():
    """The client's own reply to its summary was not served."""
    client = Client()
    told = [user("Summary: OK."), reply("Understood.")]
    for number in range(2):
        said = [user(f"What does part {number} do?"), reply(f"{number} {LONG}")]
        client.send(*said[:1], answer=f"{number} {LONG}")
        client.send(*said, user("And then?"), answer=f"Then {number} {LONG}")
        later = [user("And then?"), reply(f"Then {number} {LONG}")]
        answer = client.send(*told, *later, user("Yes?"), answer=LONG)
        assert answer.conversation == f"c{number}"
    answer = client.send(*told, user("What does part 3 do?"))
    assert answer.lineage == "new"


def test_the_same_calls_twice_match_where_their_chain_is(target):
    """An agent that does once more what it did is edited at the first time."""
    agent = Agent(target, "chat", "Which of the tests are slow?", reword=str)
    for _ in range(2):
        assert {each.conversation for each in agent.work()} == {"c0"}
        agent.later += [Said("user", "Once more, and say which of them fail.")]
    agent.later = [*agent.later[:5], Said("user", "Once more, but only list them.")]
    answer = agent.ask(Said("assistant", "Listed."))
    assert answer.lineage == "branch"


SUMMARIES = ("Summary: they said hello.", "What was before: one part is done.")


def greet(agent):
    """Some turns, so that a summary has not the place of as many messages."""
    for number in range(3):
        agent.ask(Said("assistant", f"Good day {number}."))
        agent.later.append(Said("user", f"How do you do {number}?"))
    agent.ask(Said("assistant", "Well."))


def summarise(agent, text, question):
    """The client says what was before its last question in words of its own."""
    at = max(n for n, said in enumerate(agent.later) if said.role == "user")
    agent.question, agent.reword = text, str
    told = [Said("user", text), Said("assistant", "Understood.")]
    agent.later[: at + 1] = [told[1], Said("user", reword(question))]


@pytest.mark.parametrize("name", ["", "one"])
@pytest.mark.parametrize("wire", WIRES)
def test_an_agent_goes_on_after_its_summary(target, wire, name):
    """The summary is kept after the calls that the client tells again behind it."""
    question = "Which of the tests are slow?"
    agent = Agent(target, wire, "Hello", name, reword=str)
    greet(agent)
    agent.later += [Said("user", reword(question))]
    agent.call(0)
    agent.find(0)
    agent.call(1)
    agent.find(1)
    summarise(agent, "Summary: they said hello.", question)
    for name in ("run_tests", "git_status"):
        call = Call(name, name, "{}")
        assert agent.ask(Said("assistant", calls=(call,))).conversation == "c0"
        agent.later.append(Said("tool", results=((name, f"{name} ended."),)))
        agent.later[1] = Said("user", reword(question))
        for number in range(5):
            other = Agent(target, wire, f"Which of part {number} are slow?")
            other.call(0)


@pytest.mark.parametrize("wire", WIRES)
def test_a_second_summary_with_the_same_reply_to_it_goes_on(target, wire):
    """ "Understood." stands after an earlier summary, too, and the calls between the
    two are none that the client has taken out."""
    agent = Agent(target, wire, "Hello", "one", reword=str)
    greet(agent)
    for number in range(2):
        question = f"Which tests of part {number} fail?\nIt is {number}:1"
        agent.later += [Said("user", f"{question}5 o'clock.")]
        agent.call(0)
        agent.find(0)
        agent.later[-3] = Said("user", f"{question}6 o'clock.")
        agent.later, agent.question = agent.later[-3:], SUMMARIES[number]
        agent.later.insert(0, Said("assistant", "Understood."))
        answer = agent.ask(Said("assistant", f"Part {number}: none of them."))
        assert answer.conversation == "c0"


@pytest.mark.parametrize("wire", WIRES)
def test_the_id_of_a_copy_that_found_something_else_is_not_believed(target, wire):
    """The copy has the calls and the question of the conversation with this id."""
    question = "Which of the tests are slow?"
    agent = Agent(target, wire, question, "one")
    agent.call(0)
    found = f"{FOUND[0]} and what no other has"
    agent.later.append(Said("tool", results=(("c0", found),)))
    agent.call(1)
    copy = Agent(target, wire, question, "one")
    copy.later = [*agent.later]
    copy.later[1] = Said("tool", results=(("c0", FOUND[0]),))
    copy.find(1)
    answer = copy.ask(Said("assistant", "Done."))
    assert answer.conversation != "c0"


@pytest.mark.parametrize("is_stamped", [True, False])
@pytest.mark.parametrize("wire", WIRES)
def test_a_conversation_goes_on_beside_its_copy(target, wire, is_stamped):
    """The copy has the same question in the words of a later request."""
    first, second = "Which of the tests are slow?", "Look into all of them once more."

    def stamp(question):
        return Said("user", f"[It is {next(numbers)} o'clock] {question}")

    def ask(name, reply, *history):
        body = write_body(wire, "You are an agent.", history, "m")
        return target.send(1, Request(wire, body, {HEADER: name}), reply)

    said = Said("assistant", "Most of them are, and two of them are very slow.")
    calls = [Said("assistant", calls=(Call("c", *each),)) for each in CALLS]
    found = Said("tool", results=(("c", FOUND[0]),))
    ask("one", said, stamp(first))
    told = [Said("user", first), said]
    assert ask("two", calls[0], *told, stamp(second)).lineage == "branch"
    assert ask("one", calls[0], *told, stamp(second)).conversation == "c0"
    again = stamp if is_stamped else (lambda question: Said("user", question))
    for name, conversation in (("two", "c1"), ("one", "c0")):
        answer = ask(name, calls[1], *told, again(second), calls[0], found)
        assert (answer.conversation, answer.lineage) == (conversation, "continued")


def test_the_id_of_an_agent_with_another_question_is_not_believed(target):
    """The pages that are found for the second one have some words in common, too."""
    pages = iter(
        (
            "Boats sail.",
            "Old hills, and a bridge that was built.",
            "New dunes, and a bridge that was burnt.",
        )
    )

    def reword_once(question):
        return f"Use this:\n{next(pages)}\n\nThe question is this: {question}"

    first = Agent(target, "chat", "Which tests are slow?", "one", reword=reword_once)
    second = Agent(target, "chat", "Who wrote the parser?", "two", reword=reword_once)
    assert first.call(0).conversation == "c0"
    assert second.call(0).conversation == "c1"
    second.find(0)
    second.headers = first.headers
    assert second.call(1).conversation != "c0"
