import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.summaries.facts import (
    CheckableFact,
    find_facts,
    find_identifiers,
    find_unsupported,
    missing_identifiers,
)
from tests.patience import within

SAID = [
    "Hi, I'm Lance Reed. I moved to Rome three years ago and pay 1,200 a month.",
    "Nick Bosa signed for $170 million at 3 pm. Read “Dune” yesterday, twice!",
    "我叫李雷，2024年5月3日买了《三体》，花了1.2万元，订单号 A1234567。",
]
DAYS = [date(2026, 3, 1)]


def kinds(text):
    return [(fact.kind, fact.text) for fact in find_facts(text)]


def test_facts_of_a_text_are_found():
    assert kinds('On 7 May 2023 Ann paid 1,200 for "Dune" (ann@b.de).') == [
        ("identifier", "ann@b.de"),
        ("quote", "Dune"),
        ("date", "7 May 2023"),
        ("number", "1,200"),
        ("name", "Ann"),
    ]


def test_message_numbers_are_not_facts():
    assert kinds("You said 3 in message 12 (messages 4).") == [("number", "3")]
    assert kinds("你在第 12 条消息里说过 3。") == [("number", "3")]


def test_facts_of_chinese_text_are_found():
    assert kinds(SAID[2]) == [
        ("identifier", "A1234567"),
        ("quote", "三体"),
        ("date", "2024年5月3日"),
        ("number", "1.2万"),
        ("name", "李雷"),
    ]


@pytest.mark.parametrize(
    "identifier",
    [
        "lance.b+x@mail.example.com",
        "https://example.org/a/b?c=1#d",
        "550e8400-e29b-41d4-a716-446655440000",
        "src/app/main.py",
        "/etc/nginx/nginx.conf",
        "C:\\temp\\data",
        "~/notes.txt",
        "report.pdf",
        "ORD-88213",
        "#4471234",
        "CVE-2025-64439",
    ],
)
def test_identifiers_are_found_exactly(identifier):
    assert find_identifiers(f"Look at {identifier}, please.") == [identifier]
    assert find_identifiers(f"请看{identifier}。") == [identifier]
    assert missing_identifiers("Nothing.", [f"({identifier})"]) == [identifier]
    assert missing_identifiers(f"It is {identifier}.", [f"({identifier})"]) == []


@pytest.mark.parametrize(
    "text",
    ["It is A1 or B2.", "either/or and 24/7", "In 2023, 1,200 of 5.5.", "e.g. so"],
)
def test_ordinary_words_are_not_identifiers(text):
    assert find_identifiers(text) == []


@pytest.mark.parametrize(
    "summary",
    [
        "Lance lives in Rome for 3 years and pays 1200 a month.",
        "Bosa got $170M at 15:00, or 170,000,000 dollars.",
        "The user read Dune two times on 28 February 2026.",
        "Discussed rent. However, User likes books. Overall fine.",
        "- Rent: 1,200\n2. Moved 3 years ago\n## Next Steps\n**Open Questions**:",
        "李雷买了《三体》，花了12000元，订单号A1234567。",
        "Last month, in February 2026, Lance's rent was due.",
        "",
    ],
)
def test_supported_summaries_are_not_flagged(summary):
    assert find_unsupported(summary, SAID, DAYS) == []


@pytest.mark.parametrize(
    ("summary", "wrong"),
    [
        ("Lance pays 1300 a month.", ["1300"]),
        ("He deploys it with Kafka.", ["Kafka"]),
        ('He read "Foundation".', ["Foundation"]),
        ("He moved on 4 July 2019.", ["4 July 2019"]),
        ("Write to lance@x.org or see /etc/hosts.", ["lance@x.org", "/etc/hosts"]),
        ("他名叫韩梅梅，花了1.3万元。", ["1.3万", "韩梅梅"]),
    ],
)
def test_unsupported_facts_are_listed(summary, wrong):
    assert find_unsupported(summary, SAID, DAYS) == wrong


def test_unsupported_facts_are_listed_once_and_limited():
    summary = "He met " + ", ".join(f"Abc{n}" for n in range(99)) + " and Abc1."
    assert len(find_unsupported(summary, SAID)) == 20


def test_long_conversation_is_checked_quickly():
    sources = [f"Message {n}: " + SAID[n % 3] for n in range(400)]
    with within(0.5, time.thread_time):
        assert find_unsupported("Lance pays 1300.", sources) == ["1300"]


@pytest.mark.parametrize(
    "piece", ["A", "a-", "/a", '"', "a@a.", "1,1", "叫", "May ", "A_1"]
)
def test_hostile_text_is_read_in_linear_time(piece):
    text = (piece * 32_000)[:32_000]
    with within(3, time.thread_time):
        find_unsupported(text, [text])


@given(st.text(max_size=200))
def test_every_text_supports_itself(text):
    assert find_unsupported(text, [text]) == []
    assert missing_identifiers(text, [text]) == []
    assert all(isinstance(fact, CheckableFact) for fact in find_facts(text))


@pytest.mark.parametrize(
    "text",
    [
        r"So $\lambda = \frac{\mu}{2} + 17$ holds.",
        r"$$x_1 = 42 \qquad \rho = 3$$",
        r"\[a = 12\] and \(b = 13\)",
        r"The ratio \frac and \mu are old friends.",
        "```python\nPORT = 8080\npath = '/etc/hosts'\n```",
        "~~~~\n12 Nara\n~~~\n13\n~~~~",
        "```mermaid\ngraph TD\nA1[Start 5] --> B2[Kyoto]",
        "| - | - |\n|:---:|----|\n",
    ],
)
def test_code_formulas_and_rulers_are_not_facts(text):
    assert find_facts(text) == []
    assert find_identifiers(text) == []


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (r"Open C:\\Users\\mia\\plan.txt", "plan.txt"),
        ("It costs $5 today and $6 tomorrow", "5"),
        ("We paid $1,500 (order=A17-X) and later $200 in cash.", "A17-X"),
        ("We paid $1,500 (order=A17-X) and later $200 in cash.", "1,500"),
        ("It was $1,500 for a_b=17, or/$200", "17"),
        ("From US$1,500 (a_b=17 k) to 200 US$", "17"),
        (f"It was $a_b=17 {'and so on ' * 30}there$ in all.", "17"),
        ("```\ncode\n```\nThe port is 8080.", "8080"),
        ("see /etc", "/etc"),
    ],
)
def test_facts_beside_markup_are_kept(text, fact):
    assert any(fact in each.text for each in find_facts(text))


@pytest.mark.parametrize("text", ["$", r"\[", r"\(", "```\n", "|-", "$=", r"\a"])
def test_markup_is_read_in_linear_time(text):
    started = time.process_time()
    find_facts(text * 60_000)
    assert time.process_time() - started < 8
