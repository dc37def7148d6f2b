"""The 60 questions about long files, asked about shorter ones."""

import pytest

from bench import long_files

SECTIONS = long_files.read_sections()


def test_each_question_has_an_answer_and_what_resembles_it():
    assert len(SECTIONS) == 3
    for each in SECTIONS:
        kinds = (each.answers, each.others, each.questions)
        assert [len({*kind}) for kind in kinds] == [20, 20, 20]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda each: each.name)
def test_a_file_says_each_of_them_once_and_is_always_the_same(section):
    text = long_files.write_file(section, 300_000)
    assert 300_000 <= len(text) < 302_000
    assert all(text.count(each) == 1 for each in section.answers + section.others)
    assert long_files.write_file(section, 300_000) == text


@pytest.mark.django_db
@pytest.mark.parametrize("section", SECTIONS, ids=lambda each: each.name)
def test_most_answers_are_in_the_request(section):
    text = long_files.write_file(section, 300_000)
    conversation = long_files.store_file(text)
    found, _spent = long_files.ask_all(section, conversation)
    assert sum(found) >= 15
