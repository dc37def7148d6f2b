import pytest

from memory.engine.summaries import dropped
from memory.engine.summaries.dropped import (
    MAX_LISTED,
    DroppedCount,
    DroppedDetail,
    find_dropped,
    find_dropped_by_merge,
    to_flags,
)

from .chats import assistant, tool, user
from .dropped_cases import CASES


def chat_of(texts):
    return [(user if n % 2 else assistant)(n, text) for n, text in enumerate(texts, 1)]


def compare():
    """Return how many reported details are labelled, how many are reported, how many
    labels were found, how many exist; and the errors.
    """
    right = reported = found = labels = 0
    wrong = []
    for number, (texts, summary, expected) in enumerate(CASES, 1):
        dropped = find_dropped(chat_of(texts), summary)
        reported += len(dropped)
        labels += len(expected)
        for each in dropped:
            fits = [
                label
                for label in expected
                if label[:2] == (each.seq, each.kind) and label[2] in each.text
            ]
            right += bool(fits)
            wrong += [] if fits else [f"{number}: {each}"]
        found += sum(
            any((d.seq, d.kind) == label[:2] and label[2] in d.text for d in dropped)
            for label in expected
        )
    return right, reported, found, labels, wrong


def test_reported_details_were_dropped():
    right, reported, found, labels, wrong = compare()
    assert right / reported >= 0.9, wrong
    assert found / labels >= 0.8, wrong


def test_complete_summary_has_no_reports():
    for texts, _, _ in CASES:
        assert find_dropped(chat_of(texts), "\n".join(texts)) == []


def test_reports_are_restored_from_text():
    for each in find_dropped(chat_of(CASES[0][0]), CASES[0][1]):
        assert DroppedDetail.parse_line(str(each)) == each
    for line in ("", "#x name: Ann", "#1 poem: roses", "#1 name:", "name: Ann"):
        assert DroppedDetail.parse_line(line) is None


def test_weightiest_details_come_first_and_are_limited():
    numbers = " ".join(f"Item {n} costs {n * 11} euros." for n in range(10, 90))
    texts = [f"We decided to buy everything for the kitchen. {numbers}", "Fine."]
    dropped = find_dropped(chat_of(texts), "They talked.")
    assert dropped[0].kind == "decision"
    assert len(to_flags(dropped)["dropped"]) <= MAX_LISTED


def test_every_message_is_counted_however_few_are_listed():
    texts = [f"I paid {n * 11} francs for it." for n in range(10, 51)]
    chat = [user(n, text) for n, text in enumerate(texts, 1)]
    flags = to_flags(find_dropped(chat, "They paid."))
    assert flags["dropped"] == [f"#{n} number: {(n + 9) * 11}" for n in range(1, 5)]
    assert flags["dropped_from"] == ["41 number: #1–#41"]
    assert DroppedCount.parse_line(flags["dropped_from"][0]) == DroppedCount(
        "number", 41, "#1–#41"
    )


def test_a_number_said_twice_is_listed_once_and_counted_twice():
    texts = ["It costs 1,200.", "Fine.", "So 1,200.", "Yes.", "And 45 more."]
    flags = to_flags(find_dropped(chat_of(texts), "It costs something."))
    assert flags["dropped"] == ["#1 number: 1,200", "#5 number: 45"]
    assert flags["dropped_from"] == ["3 number: #1, #3, #5"]


@pytest.mark.parametrize(
    "line", ["", "x number: #1", "1 colour: #1", "1" * 5000 + " number: #1", "1 number"]
)
def test_other_lines_are_not_counts(line):
    assert DroppedCount.parse_line(line) is None


def test_results_of_tools_and_questions_are_not_compared():
    messages = [
        user(1, "How far is it from Oslo to Bergen on 3 May?"),
        assistant(2, "", calls=["a"]),
        tool(3, "a", "463 km, order ORD-99999"),
        assistant(4, "It is 463 km."),
    ]
    assert find_dropped(messages, "They talked about a trip.") == []


def test_hedge_that_is_also_stated_plainly_is_not_reported():
    texts = [
        "Maybe we paint the kitchen blue.",
        "Hm.",
        "We paint the kitchen blue.",
        "OK",
    ]
    assert find_dropped(chat_of(texts), "They paint the kitchen blue.") == []


def test_merge_names_the_message_of_a_dropped_fact():
    messages = chat_of(["I pay 1,300 to Landlord Ltd.", "ok", "And 45 to Ann.", "ok"])
    texts = ["Pays 1,300 to Landlord Ltd.", "Pays 45 to Ann."]
    dropped = find_dropped_by_merge(texts, messages, "Pays Landlord Ltd. and Ann.")
    assert list(map(str, dropped)) == ["#1 number: 1,300", "#3 number: 45"]


def test_long_texts_are_compared_in_bounded_time():
    messages = chat_of(["maybe not sure about it, " * 2000, "no " * 20_000] * 5)
    assert find_dropped(messages, "maybe sure about it. " * 50) == []


@pytest.mark.parametrize(
    ("lines", "summary"),
    [
        ("The roof {0} is still open x{0}.", "A summary."),
        ("We decided on wood{0}. The roof {0} is still open x{0}.", "A summary."),
        ("We won't buy bolt nut. A cat{0} sat.", "We buy the bolt nut."),
    ],
)
def test_each_sentence_is_compared_with_few_others(lines, summary, monkeypatch):
    """However many there are: sentences that differ, as no repetition of a text has."""
    looked = 0

    class Counting:
        def __init__(self, work):
            self.work = work

        def __call__(self, *args):
            nonlocal looked
            looked += 1
            return self.work(*args)

    class Cue(Counting):
        search = Counting.__call__

        def sub(self, *args):
            return dropped_decision.sub(*args)

    dropped_decision = dropped.DECISION
    monkeypatch.setattr(dropped, "DECISION", Cue(dropped_decision.search))
    monkeypatch.setattr(dropped, "_overlap_of", Counting(dropped._overlap_of))
    for name in ("MOST_LATER", "MOST_PLAIN"):
        monkeypatch.setattr(dropped, name, 10)

    def count(number):
        nonlocal looked
        looked = 0
        texts = [lines.format(n) for n in range(number)]
        assert find_dropped([user(n, text) for n, text in enumerate(texts, 1)], summary)
        return looked

    assert count(200) <= 2.2 * count(100)


def test_date_is_dropped_although_its_parts_are_in_other_dates():
    said = [user(1, "The inspection is on 2027-03-16.")]
    summary = "Delivery on 2027-03-04.\nMeeting on 16 June 2027."
    assert [each.text for each in find_dropped(said, summary)] == ["2027-03-16"]
    for kept in ("16 March 2027: inspection", "2027: on the 4th and 16th of March"):
        assert find_dropped(said, kept) == []
