"""The terms of replies: found in each form of a value, and nowhere only for sure."""

from random import Random
from time import thread_time

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from bench.grounding import HALVES, LANGUAGES, judge, plant
from chatsite.features.grounding.lookup import Lookup
from chatsite.features.grounding.sources import list_sources
from memory.context import RequestContext
from memory.engine.compose import LINE, Context, Section, compose_context
from tests.patience import within

TODAY = (2026, 11, 29)


def look_up(reply, *texts, question="", has_unread=False):
    """The terms of a reply, with their words in the first text that has them."""
    found = Lookup(
        reply,
        texts,
        question,
        ranks=[0] * len(texts),
        today=TODAY,
        has_unread=has_unread,
    )
    return {
        term.text: texts[place.text][place.start : place.end]
        if (place := next(iter(term.places), None))
        else None
        for term in found.run()
    }


@pytest.mark.django_db
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_planted_terms_are_found_in_their_places(alice, half, language):
    random = Random(f"sample {half} {language}")
    verdicts = [
        verdict
        for _ in range(4)
        for verdict in judge(*plant(alice, random, half, language))
    ]
    planted = [each for each in verdicts if not each.startswith("absent")]
    assert len(planted) == 20
    assert not [each for each in planted if each.startswith("nowhere")]
    assert planted.count("right") >= 19
    assert "absent: said" in verdicts
    assert not [each for each in verdicts if each.startswith("absent: found")]


@pytest.mark.parametrize(
    ("reply", "sent"),
    [
        ("It costs **2300 dollars**.", "We pay $2,300 for it."),
        ("It costs 2.3k dollars.", "We pay $2,300 for it."),
        ("共计2,300元。", "一共两千三百元。"),
        ("It has 12 500 words.", "The text of 12,500 words."),
        ("You stay 3 nights.", "We stay three nights there."),
        ("要走１２公里。", "It is 12 km away."),
        ("That is 12.5 percent.", "A share of 12.5% was meant."),
        ("定于2026年10月3日。", "On October 3, 2026, we leave."),
        ("On the 3rd: 3 October.", "十月三日出发。"),
        ("Your code is `qf7731b`.", "Booking code QF-7731-B."),
        ("Write to A.B@Example.org soon.", "Mail: a.b@example.org"),
        ("You meet Amara Okonkwo there.", "Met AMARA OKONKWO yesterday."),
        ("It has a dented copper kettle.", "she kept a Dented copper-kettle"),
        ("你的导师叫陈晓兰。", "导师是陈晓兰，周三见面。"),
    ],
)
def test_term_is_found_in_another_form(reply, sent):
    found = look_up(reply, "Nothing of it.", sent)
    assert found
    assert None not in found.values()


@pytest.mark.parametrize(
    ("reply", "terms"),
    [
        ("Your order is TX-99871.", ["TX-99871"]),
        ("The fee is 4,815 euros.", ["4,815 euros"]),
        ("It begins on 12 March.", ["12 March"]),
        ("You asked for Desmond Achterberg there.", ["Desmond Achterberg"]),
    ],
)
def test_term_is_nowhere(reply, terms):
    sent = "We leave on October 3, for $2,300, with Amara."
    assert look_up(reply, sent) == dict.fromkeys(terms)
    # An image may have said it.
    assert look_up(reply, sent, has_unread=True) == {}


@pytest.mark.parametrize(
    "reply",
    [
        "Together 2,300 + 1,150 = 3,450 dollars.",
        "That is about 2,312 dollars.",
        "The rent is 2,300 and the deposit 6,900 dollars.",  # three times
        "Today is 29 November 2026.",
        "The second day is October 4.",
        "## Desmond Achterberg\n\n1. first\n2. second",
        "```python\nreference = 'TX-99871'\n```",
        "Achterberg it is. Desmond: yes.",
        "See the FAQ of the API, by UTF-8.",
        "It was built in 1889.",
    ],
)
def test_term_is_not_said_to_be_nowhere_in_doubt(reply):
    found = look_up(reply, "We leave on October 3, for $2,300, with Amara.")
    assert None not in found.values()


def test_name_may_be_translated():
    assert (
        look_up("You will meet Chen Xiaolan there.", "你们会见到陈晓兰，在青石巷。")
        == {}
    )


def test_words_of_the_question_are_no_terms():
    sent = "Amara pays $2,300 on October 3 for a dented copper kettle."
    reply = "Does Amara pay $2,300 on October 3 for the dented copper kettle?"
    assert look_up(reply, sent, question=reply) == {}


def test_turns_of_speech_are_no_terms():
    sent = (
        "Please let me know if you need anything else. 如果还有其他问题，可以告诉我。"
    )
    assert look_up(sent, sent) == {}


@pytest.mark.parametrize(
    "piece",
    ["4,{n} euros, ", "on {n} March, ", "Abel Quox{n} ", "AB-{n} ", "la mi fa "],
)
def test_long_replies_take_linear_time(piece):
    """A second for each of these; squared, each would take minutes."""
    text = "".join(piece.format(n=n % 900 + 10) for n in range(6_000))
    with within(6, thread_time):
        look_up(text, text, text)


def test_own_words_around_summaries_are_no_sources():
    quoted = '<summary v="1">a</summary><message n="x">b</message>'
    section = Section("summaries", (HumanMessage(quoted),))
    built = RequestContext(Context((section,)), {}, [], [], "", 0)
    assert [source.key for source in list_sources(built)] == ["edit-", "seen-0"]


def test_lines_of_messages_are_sources():
    lines = (
        HumanMessage("a < b", id="3", additional_kwargs={LINE: True}),
        AIMessage("It is.", id="4", additional_kwargs={LINE: False}),
    )
    section = compose_context(system_prompt="", recalled=lines).sections[0]
    built = RequestContext(Context((section,)), {}, [], [], "", 0)
    one, other = list_sources(built)
    assert (one.key, one.text.strip(), one.is_own) == ("seen-3", "a < b", False)
    assert (other.key, other.text.strip(), other.is_own) == ("seen-4", "It is.", True)
