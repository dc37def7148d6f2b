"""Values that change, and which one holds."""

from time import thread_time

import pytest

from memory.engine.search.ranking import read_query
from memory.engine.search.values import MOST_CHARS, find_changes, read_statements
from tests.patience import within


def changes(question, *texts, roles=None):
    told = [
        statement
        for n, text in enumerate(texts, start=1)
        for statement in read_statements(n, roles[n - 1] if roles else "user", text)
    ]
    return find_changes(told, read_query(question).terms)


def newest(question, *texts, roles=None):
    found = changes(question, *texts, roles=roles)
    return {old: change.newest for old, change in found.items()}


def test_a_value_ends_when_the_next_one_comes():
    told = [f"The dashboard API takes {n} ms now." for n in (300, 300, 250, 180)]
    found = changes("How long does the dashboard API take?", *told)
    assert {old: each.following for old, each in found.items()} == {1: 3, 2: 3, 3: 4}
    assert {each.newest for each in found.values()} == {4}


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        (
            "How long does the dashboard API take?",
            "The dashboard API takes 300 ms at the moment.",
            "We cached a lot: the dashboard API takes 250ms now.",
        ),
        (
            "How many sources are in my Zotero library?",
            "My Zotero library has 45 sources, all tagged.",
            "I've added 52 sources to my Zotero library.",
        ),
        (
            "When do I meet the piano teacher?",
            "I meet the piano teacher at 3 PM.",
            "Now I meet the piano teacher at 4:30 PM.",
        ),
        (
            "When is the sprint deadline?",
            "The sprint deadline is April 1, 2024.",
            "The sprint deadline has moved to April 5, 2024.",
        ),
        (
            "What is my annual sneaker budget?",
            "My annual budget for sneakers is $600.",
            "I raised the budget for sneakers to $1,650.",
        ),
        (
            "How high is the estate tax?",
            "Estate tax is 15%.",
            "The estate tax is 12 %.",
        ),
        (
            "How many days of summer camp?",
            "Two days of summer camp.",
            "The summer camp has five days now.",
        ),
        (
            "接口的响应时间是多少？",
            "接口的响应时间是300毫秒。",
            "接口响应时间现在250毫秒。",
        ),
    ],
)
def test_the_later_of_two_values_holds(question, old, new):
    assert newest(question, old, new) == {1: 2}


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        # In other words.
        ("When is the launch?", "Launch: 2025-03-14.", "The launch is March 14, 2025."),
        ("发布会是哪天？", "发布会定在三月十五日。", "发布会在3月15日。"),
        ("When is the tour?", "The tour is at 3 pm.", "The tour begins at 15:00."),
        ("奖金多少？", "奖金一万二。", "奖金是12000元。"),
        # No change of what is asked for.
        ("Who is my manager?", "My manager is Helen.", "My manager Helen is in Spain."),
    ],
)
def test_the_same_value_said_otherwise_replaces_nothing(question, old, new):
    assert newest(question, old, new) == {}


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        ("Who is my manager?", "My manager is Helen.", "My manager is now Priya."),
        ("数据库用什么？", "数据库用MySQL。", "数据库换成Postgres了。"),
        ("When is yoga?", "Yoga is on Tuesdays.", "Yoga is on Thursdays."),
        ("When is the audit?", "The audit is 2024-11-04.", "The audit is 2024-11-18."),
        ("火车几点开？", "火车三点开。", "火车四点半开。"),
        ("房租多少？", "房租六千块。", "房租六千五百块。"),
        ("Which gate is it?", "The gate is A17.", "The gate is B22."),
        ("Which Node is in CI?", "CI has Node v18.", "CI has Node v20."),
    ],
)
def test_values_of_any_form_are_recognised(question, old, new):
    assert newest(question, old, new) == {1: 2}


def test_older_values_are_all_replaced_by_the_last():
    texts = [f"The oven was fine for {n} months." for n in (6, 7, 9)]
    assert newest("How long was the oven fine?", *texts) == {1: 3, 2: 3}


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        # The same value again, in other words.
        ("Rent of the flat?", "The flat's rent is $900.", "Rent for the flat: $ 900."),
        # Another unit.
        (
            "How long is the new bridge?",
            "The new bridge is 90 m.",
            "New bridge: 4 years.",
        ),
        # Another subject, of which the question does not ask.
        (
            "What did the piano cost?",
            "The piano cost 300 euros.",
            "A kiln cost 80 euros.",
        ),
        # No value.
        ("How is the garden fence?", "The garden fence is red.", "Garden fence: blue."),
        # A value in code.
        (
            "What is the request timeout?",
            "The request timeout is 30 seconds.",
            "Request timeout:\n```\nrequest timeout 60 seconds\n```",
        ),
    ],
)
def test_other_statements_are_not_changes(question, old, new):
    assert newest(question, old, new) == {}


def test_assistant_value_does_not_replace_a_user_value():
    texts = "My sneaker budget is $600.", "A usual sneaker budget is $200."
    question = "What is my sneaker budget?"
    assert newest(question, *texts, roles=["user", "assistant"]) == {}
    assert newest(question, *texts, roles=["user", "user"]) == {1: 2}


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "1,",
        "$1",
        "1 a-",
        "one ",
        "1:1",
        "1.1.",
        "a1 ",
        "5月",
        "tax 1 b. ",
        "a-",
        "a1.",
        "1-1",
        "三",
        "百分之",
        "三百 tax ",
        "three hundred ",
        "half past ",
        "```\n",
    ],
)
def test_hostile_text_is_read_in_bounded_time(text):
    text *= 2 * MOST_CHARS // len(text)
    with within(1, thread_time):
        newest("tax b a", *[text] * 10)
