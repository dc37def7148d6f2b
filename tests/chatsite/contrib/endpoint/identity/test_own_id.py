"""Conversations that fit equally well, but for the client's own id or one message."""

from itertools import count

import pytest

from bench.endpoint.in_memory import MemoryTarget
from bench.endpoint.wires import Call, Request, Said, write_body

from .clients import LONG

WIRES = ("chat", "messages", "responses")
HEADER = "x-windowpane-client-conversation"
LIST, READ, TEST = (
    Said("assistant", calls=(Call(name, name, "{}"),))
    for name in ("list_files", "read_file", "run_tests")
)
FILES, README, TESTS = (
    Said("tool", results=((each.calls[0].id, text),))
    for each, text in (
        (LIST, "FILES README.md src tests"),
        (READ, "README This package says what the weather is."),
        (TEST, "TESTS 12 passed"),
    )
)
REMIND = Said("user", "<system-reminder>Keep your answers short.</system-reminder>")
hours = count()


def user(text):
    return Said("user", text)


def reply(text):
    return Said("assistant", text)


def stamp(text):
    return user(f"[It is {next(hours)} o'clock] {text}")


def look(text):
    return user(f"Look into the repository: {text}?")


@pytest.fixture(params=WIRES)
def ask(request):
    target = MemoryTarget()

    def ask(name, answer, *history, about=("You are an agent.", "weather")):
        system, tool = about
        body = write_body(request.param, system, history, "m", tool)
        headers = {HEADER: name} if name else {}
        return target.send(1, Request(request.param, body, headers), answer)

    return ask


def test_an_edit_goes_on_no_copy_that_lacks_the_last_messages(ask):
    """The copy waits for the results of the same calls, for a question of its own."""
    begun = [user("Hello"), reply(LONG)]
    ask("one", begun[1], begun[0])
    ask("two", LIST, *begun, look("who wrote all of the parser"))
    copied = look("who wrote all of the parser"), LIST, FILES
    assert ask("two", READ, *begun, *copied).conversation == "c1"
    told = [*begun, look("which tests are slow")]
    for said, found in ((LIST, FILES), (READ, README)):
        ask("one", said, *told)
        told += [said, found]
    ask("one", reply("OK."), *told)
    told.append(reply("OK."))
    assert ask("one", LIST, *told, look("when it began")).conversation == "c0"
    answer = ask("one", LIST, *told, look("where it ends"))
    assert (answer.lineage, answer.parent) == ("branch", "c0")


def test_an_edited_question_of_a_branch_is_not_the_first_one_reworded(ask):
    """The id is that of the first question's conversation, and a copy of the branch has
    taken its end."""
    begun = [user("Hello"), reply(LONG)]
    ask("one", begun[1], begun[0])
    calls = [LIST, FILES, READ]
    for text, name in (("which tests are slow", "one"), ("who wrote it", "other")):
        told = [*begun, look(text)]
        ask(name, LIST, *told)
        branch = ask(name, READ, *told, LIST, FILES)
    told += calls
    assert branch.conversation == "c1"
    assert ask("other", TEST, *told, README).conversation == "c1"
    other = Said("tool", results=((READ.calls[0].id, "README Another page of it."),))
    answer = ask("one", reply("OK."), *told, other)
    assert (answer.lineage, answer.parent) == ("branch", "c1")


@pytest.mark.parametrize(
    ("edited", "found"),
    [
        ("who wrote all of the parser, and for whom", ("branch", "c1")),
        # Half of it is the same: in doubt it is a new conversation.
        ("which tests are slow, and why is that", ("new", "")),
    ],
)
def test_an_edited_question_of_another_id_is_not_the_own_one_reworded(
    ask, edited, found
):
    """The edit came with another id, and its own id came only after it."""
    ask("one", LIST, look("which tests are slow, and since when"))
    told = [look(edited), LIST, FILES]
    assert ask("two", LIST, told[0]).conversation == "c1"
    assert ask("one", READ, *told).conversation == "c1"
    answer = ask("one", TEST, *told)
    assert (answer.lineage, answer.parent) == found


def test_reply_with_one_of_two_calls_is_not_the_own_reply(ask):
    """The reply was made again with another id, and is known word for word there."""
    both = Said("assistant", calls=LIST.calls + READ.calls)
    told = [user("Hello"), reply(LONG), look("which tests are slow")]
    ask("one", told[1], told[0])
    assert ask("one", both, *told).conversation == "c0"
    again = ask("two", LIST, *told)
    assert (again.lineage, again.parent) == ("branch", "c0")
    answer = ask("one", reply("Done."), *told, LIST, FILES)
    assert answer.conversation == again.conversation


def find(question, joint=" "):
    """Return the text with other pages that were found for it."""
    pages = joint.join(
        " ".join(f"{next(hours) * 7919 % 10007:05}" for _ in range(20)) for _ in "ab"
    )
    return user(f"### Context\n{pages}\n\n### Question\n{question}")


def test_last_of_two_equal_requests_under_one_id_is_continued(ask):
    """The words are too few to prove anything by themselves."""
    for name in ("c0", "c1"):
        assert ask("one", reply("Done."), stamp("Hello")).conversation == name
    later = user("Hello"), reply("Done."), look("which tests are slow")
    assert ask("one", LIST, *later).conversation == "c1"


def test_a_side_call_has_no_more_than_what_the_chain_proves(ask):
    """The chain's first messages are not compared again, those of a side call are."""
    told = [look("which tests are slow"), LIST, FILES, READ, README, reply("Some.")]
    for number in range(6):
        told += [user(f"What is part {number}?"), reply(f"It is {number}. {LONG}")]
        assert ask("one", told[-1], *told[:-1]).conversation == "c0"
    beside = "You look after conversations.", "save_note"
    aside = ask("one", reply("Go on."), *told, user("What may come?"), about=beside)
    assert (aside.lineage, aside.conversation) == ("branch", "c1")
    tests, parser = (
        ("Look into the slow tests?", " Of the same book: "),
        ("Look into the parser's authors?", " Of the same book: "),
    )
    assert ask("one", LIST, *told, find(*tests)).conversation == "c0"
    assert ask("one", LIST, *told, find(*parser)).conversation == "c2"
    assert ask("one", READ, *told, find(*parser), LIST, FILES).conversation == "c2"


def test_the_nearer_question_outweighs_the_id_of_another(ask):
    """Both have the same calls, and reword their question in each request."""
    hello, said = "Go on with yesterday's work.", reply(LONG)
    tests, parser = "Look into the slow tests?", "Look into the parser's authors?"
    ask("one", said, find(hello))
    assert ask("two", LIST, user(hello), said, find(parser)).conversation == "c1"
    assert ask("one", LIST, user(hello), said, find(tests)).conversation == "c0"
    answer = ask("one", READ, user(hello), said, find(parser), LIST, FILES)
    assert answer.conversation == "c1"


def test_a_short_reply_within_another_proves_nothing(ask):
    """Nor do results that are parts of others."""
    told = [user("In short: a day."), reply("Got it."), look("the tests"), LIST, FILES]
    told += [READ, README]
    ask("one", reply("Yes."), *told)
    ask("one", None, *told, reply("<details>4</details>\nYes."), user("Thanks"))
    more = [
        Said("tool", results=((each.results[0][0], each.results[0][1] + " And more."),))
        for each in (FILES, README)
    ]
    asked = user("Who has written the parser, and when?")
    other = [asked, TEST, TESTS, LIST, more[0], READ, more[1]]
    answer = ask("two", LIST, *other, reply("Yes."), look("what is left"))
    assert answer.lineage == "new"


@pytest.mark.parametrize("name", ["", "one"])
def test_a_summary_before_the_last_question_without_what_was_found_for_it(ask, name):
    question = "Note sleep one ground when that every out point bridge may need?"
    found = user(f"### Context\n{'page ' * 40}\n### Question\n{question}")
    examples = [user("Classify: late"), reply("complaint")]
    examples += [user("Classify: quick"), reply("praise")]
    ask(name, reply("Done."), *examples, found)
    told = user("In short: two examples."), reply("Understood.")
    answer = ask(name, LIST, *told, user(question), reply("Done."), user("And now?"))
    assert (answer.conversation, answer.lineage) == ("c0", "client-compacted")


@pytest.mark.parametrize("is_begun_twice", [False, True])
def test_results_that_a_copy_got_too_belong_to_the_id(ask, is_begun_twice):
    """A reminder that came last is gone, so the chain is known in the copy only."""
    if is_begun_twice:
        ask("one", reply("Hm."), user("Good day"), REMIND)
    begun = [user("Hello"), reply("Well.")]
    own = ask("one", begun[1], begun[0], REMIND).conversation
    told = [look("which tests are slow"), reply(LONG)]
    ask("one", told[1], *begun, told[0], REMIND)
    told += [look("who wrote the parser"), LIST, FILES]
    ask("one", LIST, *told[:3], REMIND)
    copy = ask("two", READ, *told, REMIND)
    assert (copy.lineage, copy.parent) == ("branch", own)
    assert ask("one", READ, *told, REMIND).conversation == own


def test_the_same_first_words_of_other_ids_take_nothing(ask):
    asked, done = "Say yes when you are ready to begin.", reply("Done.")
    for name in ("two", "three"):
        ask(name, done, user(asked))
    assert ask("one", done, stamp(asked)).conversation == "c2"
    assert ask("one", done, user(asked), done, user("Go on")).conversation == "c2"


def test_a_reply_to_a_summary_that_was_also_served_before(ask):
    told = [look("which tests are slow")]
    for said, found in ((LIST, FILES), (READ, README)):
        ask("one", said, *told)
        told += [said, found]
    ask("one", reply("OK."), *told)
    told += [reply("OK."), look("who wrote the parser")]
    for said, found in ((TEST, TESTS), (LIST, FILES), (READ, README)):
        ask("one", said, *told)
        told += [said, found]
    ask("one", reply("Nobody knows."), *told)
    told.append(reply("Nobody knows."))
    ask("one", LIST, *told, stamp("Look into what is left, and how long it takes."))
    asked = stamp("Look into what is left, and how long it takes.")
    ask("one", READ, *told, asked, LIST, FILES)
    asked = stamp("Look into what is left, and how long it takes.")
    later = user("In short: two questions."), reply("OK."), asked, LIST, FILES, READ
    answer = ask("one", TEST, *later, README)
    assert (answer.conversation, answer.lineage) == ("c0", "client-compacted")
