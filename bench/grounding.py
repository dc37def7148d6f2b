"""Sources of answers: terms planted in real requests, and where they are found.

    python -m bench.grounding

Each conversation has its terms in a file, a result of a tool, a summary, a recalled
message and a recent one; its reply says each in another form, and terms that were
never sent. The two halves have other words; only the first was looked at.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from time import process_time

from bench import databases

HALVES = ("seen", "unseen")
LANGUAGES = ("en", "zh")
PLACES = ("file", "tool", "summary", "recall", "message")
# Of each half and language.
CONVERSATIONS = 15

# By half: names, places, things, and phrases that no other text has.
WORDS = {
    ("seen", "en"): (
        "Ingrid Halvorsen|Tomasz Wieczorek|Amara Okonkwo|Hotel Zubrowka|Café Morgenrot",
        "a copper kettle with a dented spout|the mossy greenhouse behind the chapel"
        "|seven crates of salted licorice|an emerald typewriter ribbon",
        "TX|ORD|INV|QF",
    ),
    ("unseen", "en"): (
        "Lucía Barragán|Desmond Achterberg|Yuki Tanabe|Villa Serafina|Port Ellenby",
        "two barrels of pickled walnuts|a velvet curtain from the old cinema"
        "|the lighthouse keeper's brass telescope|hand-painted ceramic owls",
        "PNR|LOT|REF|KX",
    ),
    ("seen", "zh"): (
        "陈晓兰|欧阳振华|青石巷|松月旅馆|梁思敏",
        "门口种着一棵枇杷树|蓝色搪瓷茶缸|修钟表的老师傅|腌萝卜配绿豆粥",
        "TX|ORD|DH|QF",
    ),
    ("unseen", "zh"): (
        "司徒明远|顾念慈|榆钱胡同|听雨客栈|赵蕴秋",
        "院子里晒着柿饼|竹编的鸟笼|用毛笔抄写的菜谱|琉璃瓦上的麻雀",
        "PNR|KD|REF|YX",
    ),
}
FILLER = {
    "en": (
        "I walked along the river before breakfast and it was foggy.",
        "We should keep the list short, about 5 items, and check it on Friday.",
        "My neighbour repairs bicycles, 3 or 4 each weekend, for 25 dollars.",
        "The library closes at 18:00 and opens again on 2 January.",
        "There were 640 visitors in spring and 712 in summer.",
    ),
    "zh": (
        "今天早上沿着河边走了一圈，雾很大。",
        "清单最好短一点，五项左右，周五再检查一遍。",
        "邻居周末修三四辆自行车，每辆收25元。",
        "图书馆18:00关门，1月2日重新开放。",
        "春天有640位访客，夏天有712位。",
    ),
}
SAID = {
    "en": ("For the {topic}, note {term}.", "The {topic}: {term}, as agreed."),
    "zh": ("关于{topic}，请记下{term}。", "{topic}定为{term}，已经说好。"),
}
ANSWER = {"en": "About the {topic}, I have {term}.", "zh": "{topic}这一项是{term}。"}
TOPICS = {
    "en": ("deposit", "journey", "parcel", "rehearsal", "garden"),
    "zh": ("押金", "行程", "包裹", "排练", "花园"),
}
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October"),
)


@dataclass(frozen=True, slots=True)
class PlantedTerm:
    """A term: as it is sent, as the reply says it, and the key of its place."""

    kind: str
    sent: str
    said: str
    place: str = ""
    key: str = ""


def make_terms(random: Random, half: str, language: str) -> Iterator[PlantedTerm]:
    """Yield terms of all kinds, in an order of their own."""
    names, phrases, codes = (each.split("|") for each in WORDS[half, language])
    n, small = random.randrange(1_100, 98_000, 10), random.randrange(11, 95)
    day, month = random.randrange(2, 28), random.randrange(1, 11)
    hour, minute = random.randrange(1, 12), random.randrange(10, 60)
    code, digits = random.choice(codes), random.randrange(10_000, 99_999)
    name, phrase = random.choice(names), random.choice(phrases)
    made = [("name", name, name), ("phrase", phrase, phrase)]
    made.append(("code", f"{code}-{digits}", f"{code}{digits}"))
    mail = f"{code.lower()}{small}@mail{digits}.example"
    made.append(("code", mail, mail.upper()))
    if language == "en":
        other, later = (f"{MONTHS[month - 1]} {each}" for each in (day, day + 1))
        made += [
            ("number", f"{n:,} tokens", f"{n} tokens"),
            ("money", f"${n + 3:,}", f"{n + 3} dollars"),
            ("unit", f"{small} km", f"{small} kilometres"),
            ("share", f"{small}.5%", f"{small}.5 percent"),
            ("date", f"{day} {MONTHS[month - 1]} 2027", other),
            ("date", f"2028-{month:02}-{day + 1:02}", f"{later}, 2028"),
            ("time", f"{hour + 12}:{minute}", f"{hour + 12}:{minute}"),
        ]
    else:
        made += [
            ("number", f"{n}个字", f"{n:,}个字"),
            ("money", f"{n // 100 * 100}元", f"{_write(n // 100)}元"),
            ("unit", f"{small}公里", f"{small} km"),
            ("share", f"百分之{_write_small(small)}", f"{small}%"),
            ("date", f"{month}月{day}日", f"2027年{month}月{day}日"),
            ("date", f"2028-{month:02}-{day + 1:02}", f"2028年{month}月{day + 1}日"),
            ("time", f"{hour + 12}:{minute}", f"{hour + 12}:{minute}分"),
        ]
    random.shuffle(made)
    yield from (PlantedTerm(*each) for each in made)


def _write(hundreds: int) -> str:
    """A number of hundreds in Chinese characters."""
    tens, ones = divmod(hundreds, 100)
    parts = [f"{_write_small(tens)}万" if tens else ""]
    thousands, ones = divmod(ones, 10)
    digits = "零一二三四五六七八九"
    parts.append(f"{digits[thousands]}千" if thousands else "零" * bool(tens and ones))
    parts.append(f"{digits[ones]}百" if ones else "")
    return "".join(parts)


def _write_small(n: int) -> str:
    digits = "零一二三四五六七八九"
    tens, ones = divmod(n, 10)
    ten = f"{digits[tens] if tens > 1 else ''}十" if tens else ""
    return ten + (digits[ones] if ones or not tens else "")


def plant(owner: object, random: Random, half: str, language: str):
    """Return the request of a reply, what is planted in it, and what is not."""
    from memory import context, transcript
    from memory.engine.attachments import Attachment
    from tests.memory import scenes

    terms = list(make_terms(random, half, language))
    absent = list(make_terms(random, half, language))
    sent = {each.sent for each in terms} | {each.said for each in terms}
    absent = [each for each in absent if each.sent not in sent]
    topics = dict(zip(PLACES, random.sample(TOPICS[language], 5), strict=True))
    filler = lambda: " ".join(random.choices(FILLER[language], k=4))  # noqa: E731

    def say(place: str, term: PlantedTerm) -> str:
        words = random.choice(SAID[language])
        return words.format(topic=topics[place], term=term.sent)

    made = transcript.create_conversation(owner, title=half)
    scenes.say(made, say("recall", terms[0]))
    scenes.say(made, filler())
    text = f"{filler()}\n{say('summary', terms[1])}"
    summary = scenes.summarise(made, 1, 4, text=text)
    scenes.say(made, filler())
    window = scenes.ask(made, f"{say('message', terms[2])} {filler()}")
    scenes.reply_to(window, FILLER[language][0])
    text = f"{filler()}\n{filler()}\n{say('file', terms[3])}\n{filler()}"
    file = Attachment("1" * 32, "notes.txt", "text", len(text), text)
    made.refresh_from_db()
    attached, _ = transcript.append_user_message(
        made,
        text="See the file.",
        client_id="file",
        files=transcript.MessageFiles([file.id], lambda _: [file], 4_000),
    )
    scenes.reply_to(attached, FILLER[language][1])
    question = f"{topics['recall']}? {FILLER[language][0][:6]}"
    newest = scenes.ask(made, question)
    asked = scenes.call_tools(
        newest, ("look_up", f"{filler()} {say('tool', terms[4])}")
    )
    steps = context.read_steps(newest)
    built = context.build_request_context(
        made, newest=newest, steps=steps, limit=24_000
    )
    keys = {
        "recall": "seen-1",
        "summary": f"edit-{summary.version}",
        "message": f"seen-{window.seq}",
        "file": f"seen-{attached.seq}",
        "tool": f"seen-{asked + 1}",
    }
    order = ("recall", "summary", "message", "file", "tool")
    planted = [
        PlantedTerm(term.kind, term.sent, term.said, place, keys[place])
        for place, term in zip(order, terms[:5], strict=True)
    ]
    lines = [
        ANSWER[language].format(topic=topics.get(each.place, "x"), term=each.said)
        for each in (*planted, *absent[:2])
    ]
    seq = transcript.reserve_numbers(made, 1)
    reply = transcript.append_reply(made, seq=seq, text="\n".join(lines))
    return scenes.record(made, built, reply), planted, absent[:2]


def judge(
    call: object, planted: list[PlantedTerm], absent: list[PlantedTerm]
) -> Iterator[str]:
    """Yield for each term what was said of it."""
    from chatsite.features.grounding.views import find_terms

    found = list(find_terms(call))
    for term in planted:
        about = [each for each in found if _overlaps(each.text, term.said)]
        right = [
            each for each in about if each.places and each.places[0][0].key == term.key
        ]
        if any(not each.places for each in about):
            yield f"nowhere {term}"
        else:
            yield "right" if right else f"{'wrong' if about else 'missed'} {term}"
    for term in absent:
        about = [each for each in found if _overlaps(each.text, term.said)]
        is_said = any(not each.places for each in about)
        invented = "found" if any(each.places for each in about) else "unsaid"
        yield "absent: " + ("said" if is_said else f"{invented} {term}")


def _overlaps(text: str, said: str) -> bool:
    text, said = text.casefold(), said.casefold()
    return text in said or said in text


def measure(owner: object, half: str, language: str) -> Counter:
    random = Random(f"{half} {language}")
    verdicts: Counter = Counter()
    for _ in range(CONVERSATIONS):
        verdicts.update(judge(*plant(owner, random, half, language)))
    return verdicts


def measure_time() -> float:
    """Return the milliseconds of processor time for a request of 24,000 tokens."""
    from chatsite.features.grounding.lookup import Lookup
    from memory.engine.tokens import count_text

    random = Random(1)
    words = " ".join((*FILLER["en"], *TOPICS["en"])).split()
    texts, tokens = [], 0
    while tokens < 24_000:
        made = " ".join(random.choices(words, k=300)) + f" {random.randrange(99_999)}."
        texts.append(made)
        tokens += count_text(made)
    reply = " ".join(
        each.said for _ in range(4) for each in make_terms(random, "seen", "en")
    )
    times = []
    for _ in range(7):
        began = process_time()
        given = {"ranks": [0] * len(texts), "today": (2026, 1, 1), "has_unread": False}
        Lookup(reply, texts, "", **given).run()
        times.append((process_time() - began) * 1000)
    return sorted(times)[3]


def report() -> None:
    from django.contrib.auth import get_user_model

    owner = get_user_model().objects.create_user("bench")
    print("| half | language | planted | right place | false nowhere | absent, said |")
    print("|---|---|---|---|---|---|")
    for half in HALVES:
        for language in LANGUAGES:
            found = measure(owner, half, language)
            count = Counter()
            for verdict, times in found.items():
                count[
                    " ".join(verdict.split()[: 1 + verdict.startswith("absent")])
                ] += times
            planted = sum(
                n for name, n in count.items() if not name.startswith("absent")
            )
            absent = sum(count.values()) - planted
            print(
                f"| {half} | {language} | {planted} | {count['right'] / planted:.1%} "
                f"| {count['nowhere'] / planted:.1%} | "
                f"{count['absent: said'] / absent:.0%} |"
            )
            if "-v" in sys.argv and half == "seen":
                print(
                    *(v for v in found if v not in ("right", "absent: said")), sep="\n"
                )
    print(f"\n24,000 tokens: {measure_time():.0f} ms of processor time")


if __name__ == "__main__":
    databases.prepare()
    report()
