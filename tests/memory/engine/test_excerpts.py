import re

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from memory.engine.compose import compose_context, quote_message
from memory.engine.search import breadth, excerpts
from memory.engine.search.archive import MessageIndex
from memory.engine.search.ranking import Document, Hit
from memory.engine.tokens import count_tokens

FILLER = "We talked about this and that for quite a while. " * 40
LONG = f"{FILLER}My puppy is called Luna and sleeps in the kitchen. {FILLER}"


def message(number, text, **known):
    return HumanMessage(text, id=str(number), additional_kwargs=known)


def choose(texts, question, *, room=500, count=count_tokens, dated=False):
    messages = {
        n: message(n, text, **({"created_at": f"2026-05-{n:02}"} if dated else {}))
        for n, text in enumerate(texts, start=1)
    }
    hits = MessageIndex(
        [Document.from_text(n, "user", text) for n, text in enumerate(texts, 1)]
    )
    found = hits.search(question, limit=excerpts.find_breadth(question).hits)
    return excerpts.choose_excerpts(
        found, messages, question, room=room, count_tokens=count
    )


def show(chosen):
    return compose_context(system_prompt="", recalled=[note.message for note in chosen])


def wanted(*words):
    return frozenset(words)


# Which hits.


def test_excerpts_fit_the_question():
    texts = ["The puppy is called Luna.", "Bread.", "Rain.", "Snow.", "Wind."]
    (first, *_) = choose(texts, "What is the puppy called?")
    assert (first.seq, first.span) == (1, None)
    assert first.message.text == texts[0]


def test_message_without_words_is_not_shown():
    calls = [{"name": "search", "args": {"query": "the puppy called"}, "id": "1"}]
    messages = {1: AIMessage("", id="1", tool_calls=calls), 2: message(2, "A puppy.")}
    told = ['search {"query": "the puppy called"}', "A puppy."]
    hits = MessageIndex(
        [Document.from_text(n, "user", text) for n, text in enumerate(told, 1)]
    )
    found = hits.search("What is the puppy called?")
    assert 1 in {hit.seq for hit in found}
    options = {"room": 500, "count_tokens": count_tokens}
    chosen = excerpts.choose_excerpts(
        found, messages, "What is the puppy called?", **options
    )
    assert 1 not in {note.seq for note in chosen}


def test_chance_word_of_many_shows_no_message():
    texts = [f"Text {n} about topic{n}." for n in range(50)]
    texts[7] = "The weather in Lisbon."
    question = (
        "Let us plan invoices, ledgers, taxes, audits, budgets, salaries, refunds, "
        "credits, debits, loans and, depending on weather, dividends."
    )
    assert choose(texts, question) == []
    assert 8 in [note.seq for note in choose(texts, "weather Lisbon")]


def test_hit_below_the_minimal_fit_is_dropped():
    messages = {1: message(1, "tea"), 2: message(2, "tea")}
    hits = [
        Hit(1, 9.0, breadth.FEW.min_fit),
        Hit(2, 8.0, breadth.FEW.min_fit - 0.001),
    ]
    chosen = excerpts.choose_excerpts(
        hits, messages, "tea", room=500, count_tokens=count_tokens
    )
    assert [note.seq for note in chosen] == [1]


@pytest.mark.parametrize(
    ("many", "lines"),
    [
        ("List when the garden grew.", "How did my garden develop over time?"),
        ("花园的哪些事？", "先后说过花园的哪些事？"),
    ],
)
def test_a_line_of_each_is_shown_where_the_whole_conversation_is_asked_for(many, lines):
    about = "Garden, 花园的事 number {}. " + "We dug and planted until dark. " * 9
    messages = {n: message(n, about.format(n)) for n in range(1, 31)}
    hits = [Hit(n, 9.0, 0.5) for n in messages]
    shown = {
        question: excerpts.choose_excerpts(
            hits, messages, question, room=500, count_tokens=count_tokens
        )
        for question in (many, lines)
    }
    found = [note.seq for note in shown[lines]]
    assert len(found) >= len(shown[many]) + 3
    assert found == sorted(found)
    assert excerpts.find_breadth(many) is breadth.MANY


GARDEN = {
    "Can you list the order in which I brought up my garden?": "The garden: {} today.",
    "请按时间列出我说过的花园的事": "花园的事：{}，就在今天。",
}


DIGGING = "We dug and planted until it was dark. "


def recall_garden(question, *, turns=40, room=500):
    """Recall what a user said; replies have many more words of the subject."""
    say = GARDEN[question]
    filler = DIGGING * 9
    reply = f"{say.format('garden garden')} 花园花园 {filler * 3}"
    texts = [say.format(f"plan {n}") + filler for n in range(turns)]
    messages, documents = {}, []
    for n in range(1, 2 * turns + 1):
        role, text = ("user", texts[n // 2]) if n % 2 else ("assistant", reply)
        made = HumanMessage if n % 2 else AIMessage
        day = f"2026-05-{1 + n // 20:02}"
        messages[n] = made(text, id=str(n), additional_kwargs={"created_at": day})
        documents.append(Document.from_text(n, role, text))
    found = MessageIndex(documents).search(
        question, limit=excerpts.find_breadth(question).hits
    )
    chosen = excerpts.choose_excerpts(
        found, messages, question, room=room, count_tokens=count_tokens
    )
    return messages, chosen


@pytest.mark.parametrize("question", GARDEN)
def test_lines_are_of_the_users_messages_in_order_and_within_the_room(question):
    _, chosen = recall_garden(question)
    seqs = [note.seq for note in chosen]
    assert seqs == sorted(seqs)
    assert len(seqs) >= 12
    assert all(seq % 2 for seq in seqs)
    assert count_tokens(show(chosen).messages) <= 500
    for note in chosen:
        assert "plan" in note.message.text
        assert note.message.text.endswith("…")


def test_long_replies_leave_room_for_all_that_the_user_said():
    documents = []
    for n in range(90):
        reply = f"The garden and its soil, roses and fence. {DIGGING * 60}"
        documents.append(Document.from_text(2 * n + 1, "user", f"My garden has {n}."))
        documents.append(Document.from_text(2 * n + 2, "assistant", reply))
    question = "List the order in which I brought up my garden, roses, soil and fence."
    found = MessageIndex(documents).search(question, limit=None)
    assert sum(hit.seq % 2 for hit in found) >= 80


@pytest.mark.parametrize("question", GARDEN)
@pytest.mark.parametrize("room", range(60, 500, 37))
def test_lines_never_exceed_the_room(question, room):
    _, chosen = recall_garden(question, room=room)
    assert count_tokens(show(chosen).messages) <= (room if chosen else 0)


def test_line_shows_its_day_only_where_it_changes():
    _, chosen = recall_garden(next(iter(GARDEN)))
    dates = [re.findall(r'date="([\d-]+)"', line) for line in quotes(chosen)]
    shown = [date for each in dates for date in each]
    assert shown == sorted(set(shown))
    assert dates[0]
    assert not any("excerpt=" in line for line in quotes(chosen))


def test_lines_are_restored_from_their_record():
    messages, chosen = recall_garden(next(iter(GARDEN)))
    again = excerpts.restore_excerpts(
        [messages[note.seq] for note in chosen],
        spans=[[note.seq, *note.span] for note in chosen if note.span],
        newest={note.seq: note.replaced_by for note in chosen if note.replaced_by},
        until={note.seq: note.until for note in chosen if note.until},
        lines={note.seq for note in chosen},
    )
    assert [quote_message(each) for each in again] == quotes(chosen)


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("Where in Lisbon was Maya?", "How often was Maya in Lisbon?"),
        ("Was Maya in Lisbon?", "List when Maya was in Lisbon."),
        ("玛雅在里斯本吗？", "玛雅在里斯本几次？"),
    ],
)
def test_question_about_many_messages_shows_more_of_them(one, many):
    texts = [f"Text {n} about topic{n}." for n in range(80)]
    texts[::8] = [f"Maya was in Lisbon, 玛雅在里斯本 {n}. {LONG}" for n in range(10)]
    few, lots = (choose(texts, question) for question in (one, many))
    assert len(few) < len(lots)
    assert all(line.startswith('<user n="') for line in quotes(lots))
    assert count_tokens(show(lots).messages) <= 500


def test_hits_without_a_message_are_skipped():
    hits = [Hit(1, 9.0, 0.9), Hit(2, 8.0, 0.8)]
    chosen = excerpts.choose_excerpts(
        hits, {2: message(2, "tea")}, "tea", room=500, count_tokens=count_tokens
    )
    assert [note.seq for note in chosen] == [2]


def test_unknown_word_counts_as_rare():
    index = MessageIndex(
        [Document.from_text(n, "user", f"text {n}") for n in range(1, 60)]
    )
    known = index.search("text 7")[0].fit
    assert 0 < index.search("text 7 zeppelin")[0].fit < known <= 1


@pytest.mark.parametrize("room", [0, 60, 150, 200, 500, 2000])
@pytest.mark.parametrize("ratio", [1, 1.37])
def test_excerpts_stay_within_their_room(room, ratio):
    def count(messages):
        return round(count_tokens(messages) * ratio)

    texts = [f"{LONG} puppy {n} <&>" if n % 2 else "Puppy." for n in range(12)]
    chosen = choose(texts, "puppy Luna kitchen", room=room, count=count)
    assert not chosen or count(show(chosen).messages) <= room
    assert [note.seq for note in chosen] == sorted(note.seq for note in chosen)
    assert bool(chosen) == (room >= 150)


# How much of them.


def test_long_hit_shows_the_relevant_part():
    (note,) = choose([LONG], "What is the puppy called?")
    text = note.message.text
    assert "My puppy is called Luna" in text
    assert text.startswith("…")
    assert text.endswith("…")
    assert len(text) < len(LONG) / 3
    assert 'excerpt="true">…' in quote_message(note.message)


def test_excerpt_is_cut_again_from_its_span():
    (note,) = choose([LONG], "What is the puppy called?")
    again = excerpts.cut_excerpt(message(1, LONG), note.span)
    assert quote_message(again) == quote_message(note.message)
    start, end = note.span
    assert LONG[start:end] in again.text


def test_original_message_stays_whole():
    original = message(1, LONG)
    excerpts.cut_excerpt(original, (10, 20))
    assert original.text == LONG
    assert "excerpt" not in quote_message(original)


def test_a_long_hit_leaves_room_for_others():
    texts = [LONG, "A puppy in the kitchen.", LONG, "The kitchen is blue."]
    assert len(choose(texts, "puppy kitchen")) == 4


def test_many_long_hits_share_what_the_best_one_leaves():
    texts = [f"{n} {LONG}" for n in range(10)]
    notes = choose(texts, "What is the puppy called?")
    assert len(notes) >= 4
    assert all("puppy is called Luna" in note.message.text for note in notes)
    sizes = sorted(len(note.message.text) for note in notes)
    assert sizes[-1] > 1.3 * sizes[-2]


def test_two_long_hits_share_the_room_equally():
    texts = [LONG, "Bread.", f"{LONG} Indeed."]
    sizes = [len(note.message.text) for note in choose(texts, "Who is the puppy Luna?")]
    assert len(sizes) == 2
    assert max(sizes) < 1.5 * min(sizes)


def test_excerpt_marks_only_the_ends_that_were_cut():
    text = "alpha beta gamma delta"
    cuts = [
        excerpts.cut_excerpt(message(1, text), span).text
        for span in ((0, 10), (11, 22))
    ]
    assert cuts == ["alpha beta…", "…gamma delta"]


# Where to cut.


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("luna", "kitchen"), "Luna and sleeps in the kitchen"),
        (("call", "puppy"), "puppy is called"),
    ],
)
def test_span_covers_the_wanted_words(words, expected):
    start, end = excerpts.find_span(LONG, wanted(*words), 80)
    assert expected in LONG[start:end]
    assert end - start <= 80


def test_span_prefers_different_words_to_many():
    text = f"tea tea tea tea {'x ' * 200} tea and milk {'x ' * 200}"
    start, end = excerpts.find_span(text, wanted("tea", "milk"), 40)
    assert "tea and milk" in text[start:end]


def test_span_has_what_is_said_of_the_wanted_words():
    said = "It will be at the oven: 40 minutes at 220 degrees, "
    text = f"{'well, ' * 60}{said}{'well, ' * 60}"
    start, end = excerpts.find_span(text, wanted("oven"), 50)
    assert "oven: 40 minutes at 220 degrees" in text[start:end]


NUMBERS = " ".join(map(str, range(1, 200)))
CODE = "\n".join(f"if a{n} > b{n}: x = y + {n}" for n in range(60))
LOG = "log has a list: ab cd ef gh ij kl mn op qr st uv wx yz ba dc fe hg ji lk nm po"
TRIP = "昨天我去了上海的博物馆，看到很多古代的瓷器和书法作品，还拍了照片。" * 4


@pytest.mark.parametrize(
    ("text", "words", "size", "expected"),
    [
        (
            f"{NUMBERS} Anna said the deposit for the flat in Bern is due. {NUMBERS}",
            ("deposit",),
            70,
            "Anna said the deposit for the flat in Bern is due",
        ),
        (
            f"{CODE}\nThe cache keeps every answer for an hour.\n{CODE}",
            ("cache",),
            60,
            "The cache keeps every answer",
        ),
        (
            f"{LOG}\nMy servers are called atlas and borealis.\n{LOG}",
            ("list", "server"),
            70,
            "servers are called atlas and borealis",
        ),
        (
            f"{TRIP}I used the React hook useReducer for the cart state.{TRIP}",
            ("react", "hook", "use"),
            60,
            "React hook",
        ),
        (
            f"{'Nobly written words say much, as rivers say of seas. ' * 9}{TRIP}",
            ("瓷器", "书法"),
            40,
            "古代的瓷器和书法作品",
        ),
    ],
    ids=["numbers", "code", "log", "english_in_chinese", "chinese_in_english"],
)
def test_span_says_what_was_asked_for(text, words, size, expected):
    start, end = excerpts.find_span(text, wanted(*words), size)
    assert expected in text[start:end]


def test_span_has_the_number_that_was_asked_for():
    text = f"{NUMBERS} The years 1998 and 0 are in one table. {NUMBERS}"
    for year in ("1998", "0"):
        start, end = excerpts.find_span(text, wanted(year), 50)
        assert f" {year} " in text[start:end]


@pytest.mark.parametrize("around", [NUMBERS, CODE, LOG, TRIP, LONG])
def test_span_has_a_wanted_word_if_there_is_one(around):
    text = f"{around} zeppelin {around}"
    start, end = excerpts.find_span(text, wanted("zeppelin"), 60)
    assert "zeppelin" in text[start:end]


def test_span_covers_chinese_words():
    text = "今天天气很好。" * 60 + "我在上海的一家医院工作。" + "今天天气很好。" * 60
    start, end = excerpts.find_span(text, wanted("上海", "医院"), 40)
    assert "上海的一家医院" in text[start:end]


def test_span_is_the_first_of_equal_parts():
    start, end = excerpts.find_span(FILLER, wanted("zeppelin"), 100)
    assert start == 0
    assert 80 <= end <= 100


def test_span_ends_between_words():
    for size in range(60, 90):
        start, end = excerpts.find_span(LONG, wanted("puppy"), size)
        assert not start or LONG[start - 1].isspace()
        assert not LONG[end].isalnum()


@pytest.mark.parametrize("text", ["", "x", "long" * 3000, "\ud800 " * 50, "ß" * 99])
@pytest.mark.parametrize("size", [0, 1, 50])
def test_span_of_any_text_is_valid(text, size):
    start, end = excerpts.find_span(text, wanted("long", "x"), size)
    assert 0 <= start <= end <= len(text)
    assert end - start <= max(size, len(text))


# Values that have changed.

TOLD = [
    "The dashboard API takes 300 ms.",
    "I walked the dog.",
    "The dashboard API takes 250 ms.",
]
ASKED = "How long does the dashboard API take?"


def quotes(chosen):
    return [quote_message(note.message) for note in chosen]


def test_notes_mark_the_newest_value():
    old, _, new = quotes(choose(TOLD, ASKED))
    assert old.startswith('<message n="1" role="user" replaced_by="3">')
    assert new.startswith('<message n="3" role="user" newest="true">')


def test_notes_give_the_day_when_a_value_was_replaced():
    """The note has the day of the next value, not of the newest."""
    told = [*TOLD, "Dashboard API: now it takes 180 ms."]
    notes = choose(told, ASKED, dated=True)
    marks = [quote.partition(">")[0] for quote in quotes(notes)]
    assert [mark.partition('date="')[2] for mark in marks] == [
        '2026-05-01" replaced_by="4" until="2026-05-03"',
        '2026-05-02"',
        '2026-05-03" replaced_by="4" until="2026-05-04"',
        '2026-05-04" newest="true"',
    ]


def test_newest_mark_is_only_on_the_last_of_several_values():
    told = [*TOLD, "Dashboard API: now it takes 180 ms."]
    marks = [quote.partition(">")[0] for quote in quotes(choose(told, ASKED))]
    assert [mark.rpartition(" ")[2] for mark in marks] == [
        'replaced_by="4"',
        'role="user"',
        'replaced_by="4"',
        'newest="true"',
    ]


def test_old_value_is_never_shown_without_the_newest():
    messages = {n: message(n, text) for n, text in enumerate(TOLD, start=1)}
    hits = [Hit(1, 9.0, 0.9), Hit(3, 1.0, 0.2)]
    shown = {
        tuple(
            note.seq
            for note in excerpts.choose_excerpts(
                hits, messages, ASKED, room=room, count_tokens=count_tokens
            )
        )
        for room in range(300)
    }
    assert shown == {(), (3,), (1, 3)}


def test_note_names_a_newer_value_in_the_window():
    window = [message(8, "Rain."), message(9, "The dashboard API takes 90 ms now.")]
    messages = {1: message(1, TOLD[0])}
    (note,) = excerpts.choose_excerpts(
        [Hit(1, 9.0, 0.9)],
        messages,
        ASKED,
        room=500,
        count_tokens=count_tokens,
        later=window,
    )
    assert note.replaced_by == 9
    assert 'replaced_by="9"' in quote_message(note.message)


@pytest.mark.parametrize("room", [90, 110, 150, 500])
def test_notes_are_restored_from_their_record(room):
    told = [f"{FILLER}{text} {FILLER}" for text in TOLD]
    messages = [
        message(n, text, created_at=f"2026-05-{n:02}")
        for n, text in enumerate(told, start=1)
    ]
    notes = choose(told, ASKED, room=room, dated=True)
    seqs = [note.seq for note in notes]
    again = excerpts.restore_excerpts(
        [each for each in messages if int(each.id) in seqs],
        spans=[[note.seq, *note.span] for note in notes if note.span],
        newest={note.seq: note.replaced_by for note in notes if note.replaced_by},
        until={note.seq: note.until for note in notes if note.until},
    )
    assert [quote_message(each) for each in again] == quotes(notes)


# Passages.


def test_long_message_shows_its_best_passage():
    chapters = [f"Chapter {n}. {'We ate bread and cheese. ' * 15}" for n in range(20)]
    chapters[13] += "Then the puppy came."
    text = "\n\n".join(chapters)
    (note,) = choose([text], "When did the puppy come?")
    assert note.message.text == f"…{chapters[13]}…"
