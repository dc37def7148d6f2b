"""Long messages in passages."""

from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.search.passages import LEAST_WORDS, MOST_WORDS, split_passages
from tests.patience import within

PARAGRAPH = "The kettle is on and the rain goes on too. " * 5
CODE = "```python\n" + "total = total + 1\n\n" * 90 + "```"


def parts(text):
    return [text[start:end] for start, end in split_passages(text)]


def sizes(text):
    return [len(part.split()) for part in parts(text)]


@pytest.mark.parametrize("text", ["", " \n ", "One short line.", "\ud800 tea", "茶"])
def test_a_short_text_is_one_passage(text):
    assert parts(text) == [text.strip()]


def test_a_long_text_is_divided_between_paragraphs():
    text = "\n\n".join(f"{n}: {PARAGRAPH}" for n in range(12))
    assert len(parts(text)) == 6
    assert all(LEAST_WORDS <= size <= MOST_WORDS for size in sizes(text))
    assert all(part[0].isdigit() for part in parts(text))


def test_a_long_paragraph_is_divided_between_sentences():
    text = PARAGRAPH * 8
    assert len(parts(text)) > 4
    assert all(part.endswith(".") for part in parts(text))
    assert max(sizes(text)) <= MOST_WORDS


def test_lines_of_a_list_are_kept_whole():
    text = "\n".join(f"- item {n} of the list is here" for n in range(60))
    assert all(part.startswith("- item") for part in parts(text))


def test_code_is_kept_whole():
    first, code, last = parts(f"{PARAGRAPH * 2}\n\n{CODE}\n\n{PARAGRAPH * 2}")
    assert code == CODE
    assert first == last == (PARAGRAPH * 2).strip()


def test_unclosed_code_extends_to_the_end():
    assert parts(f"{PARAGRAPH * 2}\n\n{CODE[:-3]}")[-1] == CODE[:-3].strip()


def test_short_code_stays_with_its_explanation():
    text = f"Run this:\n\n```\nmake\n```\n\nThen look.\n\n{PARAGRAPH * 2}"
    assert "make" in parts(text)[0]
    assert "Run this" in parts(text)[0]


def test_few_words_at_the_end_join_the_passage_before():
    text = f"{PARAGRAPH * 2}\n\nThank you!"
    assert parts(text) == [text]


def test_two_chinese_characters_count_as_a_word():
    text = "今天我们去公园散步，天气很好。" * 60
    assert all(part.endswith("。") for part in parts(text))
    assert all(100 < len(part) <= 2 * MOST_WORDS for part in parts(text))


@given(st.text(st.sampled_from("a .\n`~。中\t#"), max_size=400))
def test_gaps_between_passages_are_only_space(text):
    place, rest = 0, ""
    for start, end in split_passages(text):
        assert place <= start <= end <= len(text)
        rest += text[place:start]
        place = end
    assert not (rest + text[place:]).strip()


@pytest.mark.parametrize(
    "text", ["`", "\n", "```\n", "a ", "~~~a\n", "。", " \n", "1. "]
)
def test_hostile_text_is_divided_in_linear_time(text):
    with within(1, thread_time):
        split_passages(text * (200_000 // len(text)))
