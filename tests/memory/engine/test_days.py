from datetime import UTC, datetime

import pytest

from memory.engine.search import days
from memory.engine.search.archive import MessageIndex
from memory.engine.search.days import read_asked_days, read_day_terms
from memory.engine.search.ranking import Document

# A Wednesday.
AT = datetime(2023, 5, 10, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2 May", "05-02"),
        ("May 2nd", "05-02"),
        ("2nd of May 2023", "2023-05-02"),
        ("Sept. 3, 2023", "2023-09-03"),
        ("2023-05-02", "2023-05-02"),
        ("02.05.2023", "2023-05-02"),
        ("5/31/2023", "2023-05-31"),
        ("5月2日", "05-02"),
        ("2023年五月二号", "2023-05-02"),
        ("十二月二十五日", "12-25"),
        ("yesterday", "2023-05-09"),
        ("the day before yesterday", "2023-05-08"),
        ("last Tuesday", "2023-05-09"),
        ("last Wednesday", "2023-05-03"),
        ("this Friday", "2023-05-12"),
        ("next Monday", "2023-05-15"),
        ("three days ago", "2023-05-07"),
        ("a week ago", "2023-05-03"),
        ("昨天", "2023-05-09"),
        ("大前天", "2023-05-07"),
        ("上周二", "2023-05-02"),
        ("这个星期天", "2023-05-14"),
        ("下礼拜一", "2023-05-15"),
        ("十二天前", "2023-04-28"),
        ("两个星期前", "2023-04-26"),
    ],
)
def test_question_names_a_day(text, day):
    assert read_asked_days(f"And {text}?", AT) == ("And  ?", [day])


@pytest.mark.parametrize(
    "text",
    ["31 February 2023", "2023-13-40", "you may 2b", "1.2.3", "5月", "last year", ""],
)
def test_text_without_days_is_unchanged(text):
    assert read_asked_days(text, AT) == (text, [])


def test_yesterday_is_not_a_day_without_a_time():
    assert read_asked_days("yesterday", None) == ("yesterday", [])
    assert read_day_terms("yesterday, 2 May 2023", None) == ["2023-05-02", "05-02"]


def test_day_without_a_year_is_of_the_nearest_year():
    assert "2022-12-25" in read_day_terms("On 25 December", AT)
    assert "2023-08-01" in read_day_terms("8月1日", AT)


@pytest.mark.parametrize(
    "question", ["What of 9 May?", "5月9日怎么了？", "What was yesterday?", "昨天呢？"]
)
def test_message_is_found_by_its_day_and_by_the_day_it_names(question):
    texts = ["Tea.", "It was raining yesterday.", "Cake.", "Hm.", "So.", "9 May, then."]
    days = [9, 10, 12, 2, 3, 1]
    index = MessageIndex(
        Document.from_text(n, "user", text, AT.replace(day=day))
        for n, (text, day) in enumerate(zip(texts, days, strict=True), start=1)
    )
    assert {hit.seq for hit in index.search(question, at=AT)[:3]} == {1, 2, 6}


FORMS = (
    *(f"2 {month}" for month in days.MONTHS),
    *(f"{month} 2" for month in days.MONTHS),
    *days.RELATIVE,
    *days.HAN_RELATIVE,
    *(f"{number} days ago" for number in [*days.COUNTS, *[*days.WORDS][1:]]),
    *(f"{which} friday" for which in ("last", "this", "next")),
    *(f"{number}天前" for number in days.HAN[1:]),
    *(f"{which}周五" for which in days.HAN_WEEKS),
    *("2026-05-02", "2.5.2026", "2026年5月2日", "十月二号"),
)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_found_where_it_begins(form):
    """Places with which none of them begins are passed over."""
    for text in (form, form.upper(), f"We met {form}, and"):
        _, found = read_asked_days(text, AT)
        assert len(found) == 1, text
