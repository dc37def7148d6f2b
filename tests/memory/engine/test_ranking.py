from datetime import UTC, datetime
from time import thread_time
from unicodedata import normalize

import pytest

from memory.engine.search.archive import MessageIndex
from memory.engine.search.passages import split_passages
from memory.engine.search.ranking import Corpus, Document, Hit, Index, read_query
from memory.engine.search.terms import extract_terms, spell, stem_word
from tests.patience import within

TALK = [
    ("Ann", "I adopted a puppy yesterday, she is called Luna."),
    ("Ben", "Congratulations! What breed is she?"),
    ("Ann", "A border collie. We went hiking in the mountains."),
    ("Ben", "I baked sourdough bread on Sunday."),
    ("Ann", "My sister moved to Lisbon for a job at a bank."),
    ("Ben", "Lisbon is lovely. I painted the kitchen blue."),
    ("Ann", "Did you hike again?"),
    ("Ben", "我在上海的一家医院工作。"),
    ("Ann", "好的，我喜欢喝绿茶。"),
]


def documents(talk=TALK):
    return [
        Document.from_text(
            n, speaker, text, datetime(2026, (n - 1) % 12 + 1, 7, tzinfo=UTC)
        )
        for n, (speaker, text) in enumerate(talk, start=1)
    ]


def rank(query, documents, **options):
    return MessageIndex(documents).search(query, **options)


def first(query):
    return rank(query, documents())[0].seq


@pytest.mark.parametrize(
    ("query", "seq"),
    [
        ("What is the name of the puppy?", 1),
        ("Where did Ann's sister move?", 5),
        ("bread", 4),
        ("Who hikes in mountains?", 3),
        ("在哪里工作？", 8),
        ("喜欢喝什么茶", 9),
    ],
)
def test_search_finds_what_was_said(query, seq):
    assert first(query) == seq


def test_search_needs_only_one_of_the_words():
    assert first("puppy zeppelin quasar marmalade") == 1


@pytest.mark.parametrize("query", ["", "the of and", "???", "zeppelin", "Ann"])
def test_search_finds_nothing_without_a_term(query):
    assert rank(query, documents()) == []


def test_answer_is_found_by_the_question_before_it():
    talk = [("Ann", "Which breed is it?"), ("Ben", "A collie."), *[("Ann", "ok")] * 9]
    hits = rank("breed", documents(talk))
    assert [hit.seq for hit in hits] == [1, 2, 3]


def test_search_finds_by_date():
    assert first("What happened in May 2026?") == 5


def test_search_returns_the_best_first_up_to_the_limit():
    hits = rank("Lisbon kitchen", documents(), limit=2)
    assert len(hits) == 2
    assert hits[0].score > hits[1].score > 0
    assert isinstance(hits[0], Hit)


def test_search_works_without_documents_and_without_dates():
    assert rank("tea", []) == []
    assert rank("tea", [Document.from_text(1, "user", "green tea")])[0].seq == 1


@pytest.mark.parametrize("text", ["\ud800 tea", "\x00tea", "TEA", "tea" * 9000])
def test_search_accepts_any_text(text):
    hits = rank(
        text,
        [Document.from_text(1, "user", text), Document.from_text(2, "user", "coffee")],
    )
    assert hits[0].seq == 1


@pytest.mark.parametrize(
    "words",
    [
        ("hike", "hikes", "hiked", "hiking"),
        ("paint", "paints", "painted", "painting"),
        ("story", "stories"),
        ("plan", "planned", "planning", "plans"),
        ("class", "classes"),
        ("give", "gives", "gave", "given", "giving"),
        ("buy", "bought", "buying"),
        ("child", "children"),
        ("bus",),
        ("movie", "movies"),
        ("cookie", "cookies"),
        ("pie", "pies"),
        ("study", "studies", "studied", "studying"),
        ("discuss", "discusses", "discussed", "discussing"),
        ("pass", "passes", "passed", "passing"),
        ("process", "processes", "processed", "processing"),
        ("close", "closes", "closed", "closing"),
        ("Zürich", "ZÜRICH", "zurich", "Zu\u0308rich"),
        ("phở", "pho"),
        ("İstanbul", "istanbul", "ıstanbul"),
        ("ＡＢＣ１２３", "abc123"),
        ("Łódź", "lodz"),
        ("Ёлка", "елка"),
        ("Straße", "strasse"),
        ("Ørsted", "orsted"),
        ("ﬁnal", "final"),
        ("Résumé", "Re\u0301sume\u0301", "resume"),
    ],
)
def test_forms_of_a_word_are_one_term(words):
    assert len({*map(tuple, map(extract_terms, words))}) == 1
    assert len({stem_word(word) for word in words if word.isascii()}) <= 1


@pytest.mark.parametrize("pair", [("1500", "150"), ("2000", "200"), ("A4433", "A443")])
def test_numbers_are_whole(pair):
    assert len({*map(tuple, map(extract_terms, pair))}) == 2


@pytest.mark.parametrize(
    "text", ["がくせい", "서울역", "東京", "ガイド", "पानी", "Acme™", "10℃"]
)
def test_other_scripts_keep_their_letters(text):
    assert extract_terms(text) == extract_terms(normalize("NFD", text))
    assert "™" not in "".join(extract_terms(text))
    assert extract_terms("がか") != extract_terms("かか")
    assert extract_terms("Acme™") == extract_terms("Acme")


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        ("zurich", "in ZU\u0308RICH, ja", "ZU\u0308RICH"),
        ("Café", "the cafe", "cafe"),
        ("abc12", "ＡＢＣ１２３", "ＡＢＣ１２"),
        ("istanbul", "İSTANBUL", "İSTANBUL"),
        ("c++ (x)", "C++ (X)", "C++ (X)"),
        ("火车", "坐火车去", "火车"),
        ("Straße", "die Straße", "Straße"),
        ("strasse", "die Straße", "Straße"),
        ("aether", "der Æther", "Æther"),
        ("fine", "ﬁne", "ﬁne"),
    ],
)
def test_words_are_found_in_all_their_forms(words, text, found):
    assert spell(words).search(text)[0] == found


def test_chinese_terms_are_pairs_of_characters():
    assert extract_terms("喝绿茶 tea 水") == ["tea", "喝绿", "绿茶", "水"]


@pytest.mark.parametrize("said", ["结了婚", "结的婚", "结过婚", "结婚"])
def test_chinese_word_with_a_particle_inside_matches_the_word(said):
    assert "结婚" in extract_terms(f"我们在苏州{said}。")


@pytest.mark.parametrize("parts", [(1,) * 9, (4, 5), (8, 1), (0, 9)])
def test_documents_added_later_are_found_alike(parts):
    talk, index = iter(documents()), MessageIndex()
    for count in parts:
        index.add_documents([next(talk) for _ in range(count)])
    for query in ("Where does Ann hike?", "Lisbon kitchen", "May", "绿茶 tea", "zebra"):
        assert index.search(query) == rank(query, documents())


def test_search_of_ten_thousand_messages_is_fast():
    texts = (f"word{n} tea cup" for n in range(1, 10_001))
    index = MessageIndex(
        [Document.from_text(n, "user", text) for n, text in enumerate(texts, 1)]
    )
    with within(0.5, thread_time):
        assert index.search("word77")[0].seq == 77


def long_reply(*, about=""):
    filler = ["There is a lot to say of gardens, and of tea. " * 8] * 12
    filler[7] += about
    return "\n\n".join(filler)


def test_message_scores_like_its_best_passage():
    reply = long_reply(about="The zeppelin is blue.")
    talk = [("user", "Zeppelin, you say? And the tide?"), *[("assistant", "ok")] * 5]
    talk.append(("assistant", reply))
    assert {hit.seq for hit in rank("blue zeppelin", documents(talk))[:2]} == {1, 7}
    (hit,) = [hit for hit in rank("blue zeppelin", documents(talk)) if hit.seq == 7]
    start, end = split_passages(reply)[hit.passage]
    assert "zeppelin" in reply[start:end]
    assert (end - start) < len(reply) / 4


def test_neighbours_are_those_of_the_passage():
    talk = [("user", "Which breed is it?"), ("assistant", long_reply()), ("user", "ok")]
    hits = {hit.seq: hit.passage for hit in rank("breed", documents(talk))}
    assert hits[2] == 0
    assert 3 not in hits


def weights(talk, question):
    index = Index(documents(talk), Corpus(len(talk)))
    return index.weigh_speakers(read_query(question))


def test_speaker_who_says_less_counts_more():
    uneven = [("user", "Tea or milk, please?"), ("assistant", long_reply())] * 3
    even = [("user", "Tea or milk, please?"), ("assistant", "Tea, milk, please.")] * 3
    found, own = (
        weights(uneven, question) for question in ("Which tea?", "What was my tea?")
    )
    assert own["user"] > found["user"] > found["assistant"] == own["assistant"] == 1
    assert max(weights(even, "What was my tea?").values()) < 1.2
    assert weights([], "tea") == {}


def test_speaker_who_says_almost_nothing_is_limited():
    facts = [f"My {thing} is in room {n}." for n, thing in enumerate("abcdefgh" * 3)]
    talk = [
        turn for fact in facts for turn in (("user", fact), ("assistant", "Noted."))
    ]
    talk[20] = ("user", "My kiln is in the old house.")
    hits = rank("Where is my kiln, in which room of the house?", documents(talk))
    assert hits[0].seq == 21


def test_answer_borrows_more_than_other_messages():
    def find(first, second):
        talk = [("user", "ok"), ("user", first), ("assistant", second)]
        return {hit.seq: hit.score for hit in rank("zeppelin", documents(talk))}

    asked = find("Which zeppelin is it?", "A blue one.")
    told = find("It is the zeppelin.", "A blue one.")
    assert asked[3] > told[3]
    assert asked[2] < told[2]


def test_neighbours_lend_less_where_nobody_asks():
    lent = [
        Index(documents(talk), Corpus(len(talk))).find_hits(read_query("vet"))[1].score
        for talk in (
            [("Ann", "The vet is kind."), *[("Ben", said), ("Ann", "Fine.")] * 20]
            for said in ("Anything else?", "Noted.")
        )
    ]
    assert lent[0] > 2 * lent[1] > 0


@pytest.mark.parametrize(("messages", "share"), [(20, 1 / 3), (50, 1 / 6)])
def test_neighbours_lend_this_share_where_none_has_a_question_mark(messages, share):
    talk = [("Ann", "The vet is kind."), ("Ben", "Noted.")] * (messages // 2)
    index = Index(documents(talk), Corpus(messages))
    assert index._relate_neighbours() == pytest.approx(share)
