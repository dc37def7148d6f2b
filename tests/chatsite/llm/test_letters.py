"""Letters that upper and lower case confuse, in what people say to the demo model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from chatsite.llm.demo.chat_model import reply_to
from chatsite.llm.demo.facts import to_second_person

ODD = str.maketrans({"i": "ı", "s": "ſ", "k": "\u212a"})
SAID = ("My name is Kim.", "I like my skis", "I live in Kiel", "My pin is 4711")
ASKED = ("What do I like?", "Where do I live?", "What is my pin?", "Who am I?")


@st.composite
def odd(draw, texts):
    text = draw(st.sampled_from(texts))
    swaps = {"i": "iıİ", "s": "sſ", "k": "k\u212a"}
    return "".join(draw(st.sampled_from(swaps.get(c.lower(), c))) for c in text)


@pytest.mark.parametrize("text", ["ı like İt", "ı am myſelf", "İ was"])
def test_letters_that_only_look_like_a_word_of_the_table_stay(text):
    assert to_second_person(text) == text


@given(odd(SAID), odd(ASKED))
def test_the_demo_model_answers_whatever_the_letters(said, asked):
    messages = [HumanMessage(said, id="1"), AIMessage("Noted.", id="2")]
    assert reply_to([*messages, HumanMessage(asked, id="3")])


def test_a_quoted_number_may_have_any_length():
    fenced = f'<history>\n<summary messages="{"1" * 5000}-2" version="1">x</summary>'
    messages = [HumanMessage(f"{fenced}\n</history>", id="1"), AIMessage("ok", id="2")]
    assert reply_to([*messages, HumanMessage("What did I say?", id="3")])
