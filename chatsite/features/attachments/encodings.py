"""Bytes as text: which encoding they are in, or which ones they may be in.

It knows no Django: programs that read documents use it, too.
"""

import codecs
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import chardet

# The longer ones first: UTF-32 begins like UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The codec of each encoding that the detector looks for, by its name there.
DETECTED = {
    **{f"Windows-{number}": f"cp{number}" for number in range(1250, 1258)},
    **{"CP874": "cp874", "CP932": "cp932", "CP949": "cp949", "GB18030": "gb18030"},
    **{"EUC-JP": "euc_jp", "euc_jis_2004": "euc_jp"},
    **{"Big5": "cp950", "big5hkscs": "big5hkscs"},
    **{"KOI8-R": "koi8_r", "koi8-u": "koi8_u", "MacRoman": "mac_roman"},
    **{"cp850": "cp850", "cp852": "cp852", "IBM866": "cp866"},
}
# Their names on pages.
NAMES = {
    **{f"cp{number}": f"Windows-{number}" for number in range(1250, 1258)},
    **{"cp874": "Windows-874", "cp932": "Shift_JIS", "cp949": "EUC-KR"},
    **{"cp950": "Big5", "big5hkscs": "Big5-HKSCS", "gb18030": "GB 18030"},
    **{"euc_jp": "EUC-JP", "mac_roman": "MacRoman", "koi8_r": "KOI8-R"},
    **{"koi8_u": "KOI8-U", "iso2022_jp_2": "ISO-2022-JP", "iso2022_kr": "ISO-2022-KR"},
    **{"cp850": "DOS 850", "cp852": "DOS 852", "cp866": "DOS 866"},
}
# Names that pages and letters have for them; what they call Latin-1 or GB 2312 has
# the letters of its successor.
LABELS = {
    **{"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254"},
    **{"gb2312": "gb18030", "gbk": "gb18030", "big5": "cp950", "euc_kr": "cp949"},
    **{"shift_jis": "cp932", "iso2022_jp": "iso2022_jp_2", "tis-620": "cp874"},
    **{"mac-roman": "mac_roman", "koi8-r": "koi8_r", "koi8-u": "koi8_u"},
    **{"x-sjis": "cp932", "x-gbk": "gb18030", "x-euc-jp": "euc_jp"},
    **{"windows-31j": "cp932", "windows-874": "cp874"},
    **{"x-mac-roman": "mac_roman", "x-x-big5": "cp950"},
}
ALSO_READ = re.compile(r"utf-(8|16|32)(-[lb]e)?|iso8859-\d+|hz|euc_jis_2004|johab")
DECLARED = re.compile(rb"""(?:charset|coding)\s{0,3}[=:]\s{0,3}["']?([\w-]{2,20})""")
LANGUAGE = re.compile(rb"""\blang=["']?([a-z]{2})""")
HEAD = 1_024

# Bytes that are decoded in one go: no other thread works meanwhile.
AT_ONCE = 65_536
# The size of the detector's sample: lines with letters beyond ASCII.
SAMPLE_BYTES = 65_536
HIGH = re.compile(rb"[\x80-\xff]")
BEYOND_ASCII = re.compile(r"[\x80-\U0010ffff]")
# Characters of a reading that are looked at.
MOST_CHARS = 2_000

# How many times more likely than the next one the first has to be. Two encodings of
# East Asia share most of their bytes.
MARGIN, EAST_ASIAN_MARGIN = 1.5, 6
FEW_BYTES = 6  # by so much, divided by their number, the less there is to judge by
EXPECTED = 1.5  # as much more likely is the language of the page
MOST_READINGS, MOST_TIMES_LESS = 3, 50
# With more odd characters it is no reading, and not one that is taken unasked.
MOST_ODD, FEW_ODD = 0.6, 0.2

# Letters besides ASCII of languages that share encodings.
LETTERS = {
    **{"cs": "áčďéěíňóřšťúůýž", "da": "æøåé", "de": "äöüß", "es": "áéíñóúü"},
    **{"et": "äõöüšž", "fi": "äöå", "fr": "àâæçèéêëîïôœùûüÿ", "hr": "čćđšž"},
    **{"hu": "áéíóöőúüű", "is": "áðéíóúýþæö", "it": "àèéìíîòóùú"},
    **{"lt": "ąčęėįšųūž", "lv": "āčēģīķļņšūž", "nl": "áéèëïíóöüú", "no": "æøåéòô"},
    **{"pl": "ąćęłńóśźż", "pt": "áâãàçéêíóôõúü", "ro": "ăâîșțşţ"},
    **{"sk": "áäčďéíĺľňóôŕšťúýž", "sl": "čšž", "sv": "äöåé", "tr": "çğıöşüâîûi̇"},
}
# The set that an encoding of East Asia extends, and the last of its first bytes that
# has common characters.
COMMON = {
    **{"gb18030": ("gb2312", 0xD7), "cp950": ("big5", 0xC6)},
    **{"big5hkscs": ("big5", 0xC6), "cp932": ("shift_jis", 0x98)},
    **{"euc_jp": ("euc_jp", 0xCF), "cp949": ("euc_kr", 0xC8)},
}
JAPANESE = ("cp932", "euc_jp")
ALPHABETS = ("LATIN", "CYRILLIC", "GREEK", "HEBREW", "ARABIC", "THAI")
BETWEEN_LETTERS = "’‘´·…\u00ad\u200c\u200d\u200e\u200f"
AFTER_LETTERS = "°²³ªº™®©€£¹"
# Rarely without a space.
BESIDE_SPACE = "–—†‡•"


class EncodingChoice(NamedTuple):
    """A file in an encoding: how it is called, and a line of it to choose by."""

    codec: str
    name: str
    preview: str


class _Guess(NamedTuple):
    codec: str
    text: str
    score: float
    oddity: float


def find_encodings(data: bytes, languages: Sequence[str] = ()) -> list[str]:
    """Return the codecs that the bytes may be in, the likeliest first.

    One codec if it is certain, up to three if not, none if the bytes are no text.
    `languages`: codes of the expected languages, such as "de".
    """
    head = data[:SAMPLE_BYTES]
    if b"\0" in head:
        return _find_wide(head)[:1]
    if b"\x1b$" in head and not HIGH.search(data):
        named = ("iso2022_kr" if b"\x1b$)C" in head else "iso2022_jp_2",)
        return [each for each in named if decode(data, each)]
    if decode(data, "utf-8") is not None:
        return ["utf-8"]
    # As which it is only damaged.
    replaced = head.decode("utf-8", "replace").count("\ufffd")
    if replaced <= len(HIGH.findall(head)) / 20:
        return []
    declared = find_declared(data)
    sample = _take_sample(data)
    said = _decode_sample(sample, declared) if declared else ""
    if measure_oddity(said, declared) <= FEW_ODD and _fits(data, declared):
        return [declared]
    wide = _find_wide(head)
    ranked = _rank(sample, languages)
    least = ranked[0].score / MOST_TIMES_LESS if ranked else 0
    fitting = (g for g in ranked if g.score >= least and _fits(data, g.codec))
    likely = [*islice(fitting, MOST_READINGS)]
    if wide and not (likely and likely[0].oddity <= FEW_ODD):
        return wide
    chosen = [each.codec for each in _choose(likely, len(HIGH.findall(sample)))]
    return [*chosen[: MOST_READINGS - len(wide)], *wide] if len(chosen) > 1 else chosen


def find_declared(data: bytes) -> str:
    """Return the codec that a page or a program declares."""
    named = DECLARED.search(data, 0, HEAD)
    return find_codec(named[1].decode("ascii", "replace")) if named else ""


def find_codec(label: str) -> str:
    """Return the codec of a name, "" if it has none that can be read here."""
    label = label.strip().lower()
    try:
        name = LABELS.get(label) or codecs.lookup(label).name
    except (LookupError, ValueError):
        return ""
    name = LABELS.get(name, name)
    return name if name in NAMES or ALSO_READ.fullmatch(name) else ""


def decode(data: bytes, codec: str) -> str | None:
    """Return the text without its byte order mark, None if the codec does not fit."""
    for mark, marked in MARKS:
        if codec == marked and data.startswith(mark):
            data = data[len(mark) :]
    decoder = codecs.getincrementaldecoder(codec)()
    starts = range(0, len(data), AT_ONCE)
    try:
        parts = [decoder.decode(data[start : start + AT_ONCE]) for start in starts]
        return "".join([*parts, decoder.decode(b"", final=True)])
    except UnicodeDecodeError:
        return None


def name_codec(codec: str) -> str:
    return NAMES.get(codec, codec.upper())


def _fits(data: bytes, codec: str) -> bool:
    return decode(data, codec) is not None


def find_marked(data: bytes) -> str:
    """Return the codec of the byte order mark, "" if there is none."""
    return next((codec for mark, codec in MARKS if data.startswith(mark)), "")


def make_reading(data: bytes, codec: str) -> EncodingChoice:
    """Return a choice of this codec, with the first line beyond ASCII as preview."""
    text = _decode_sample(_take_sample(data), codec)
    found = BEYOND_ASCII.search(text)
    at = found.start() if found else 0
    start = max(text.rfind("\n", 0, at) + 1, text.rfind("\r", 0, at) + 1, at - 30)
    line = " ".join(text[start : start + 200].lstrip().splitlines()[:1])
    return EncodingChoice(codec, name_codec(codec), line[:80])


def decode_page(data: bytes, *labels: str) -> str:
    """Return the text of a web page or an e-mail, whose encoding no user can choose.

    The encoding is that of its byte order mark, of one of these labels, or the declared
    one; otherwise the likeliest, with a note in the text if it is in doubt. Bytes that
    do not fit are replaced.
    """
    named = (find_marked(data), *map(find_codec, labels), find_declared(data))
    for codec in filter(None, named):
        text = data.decode(codec, "replace")
        if _count_replaced(text) <= len(text) / 100:
            return text.removeprefix("\ufeff")
    language = LANGUAGE.search(data, 0, HEAD)
    found = find_encodings(data, [language[1].decode()] if language else [])
    text = data.decode(found[0] if found else "utf-8", "replace")
    if len(found) == 1 or not _count_replaced(text) and not found:
        return text
    guess = name_codec(found[0] if found else "utf-8")
    return f"[The encoding is not known; this was read as {guess}.]\n{text}"


def _count_replaced(text: str) -> int:
    # The last letter may have been cut off.
    return text.count("\ufffd", 0, max(0, len(text) - 1))


def _find_wide(head: bytes) -> list[str]:
    """Return UTF-32 or UTF-16 without a mark, if the text has no odd characters.

    Without a zero byte only texts of East Asia can be in them; common characters tell
    these from other bytes.
    """
    has_zeros = b"\0" in head
    for codec, width in (("utf-32", 4), ("utf-16", 2)):
        if len(head) % width:
            continue
        texts = {
            f"{codec}-{order}": _decode_sample(head, f"{codec}-{order}")
            for order in ("le", "be")
        }
        odd = {
            each: measure_oddity(text, each)
            for each, text in texts.items()
            if "\0" not in text
            and not _is_swapped(text)
            and (has_zeros or _is_east_asian(text))
        }
        if odd and min(odd.values()) < 0.05:
            return [min(odd, key=odd.__getitem__)]
    return []


def _is_swapped(text: str) -> bool:
    """Return whether much of it would be ASCII with its bytes swapped."""
    return sum(not ord(char) & 0xFF for char in text) * 4 > len(text)


def _is_east_asian(text: str) -> bool:
    """Return whether the text has marks or syllables that chance bytes rarely give."""
    return len(text) >= 6 and bool(re.search(r"[\u3001-\u30ff\uff01-\uff1f]", text))


def _take_sample(data: bytes) -> bytes:
    """Lines with letters beyond ASCII, up to SAMPLE_BYTES."""
    parts, at, left = [], 0, SAMPLE_BYTES
    while left > 0 and (found := HIGH.search(data, at)):
        first = found.start()
        start = max(at, data.rfind(b"\n", max(at, first - 200), first) + 1)
        # A line that is longer begins at the letter, which is whole there.
        start = start if first - start < 200 else first
        end = data.find(b"\n", first, first + left)
        end = end + 1 if end >= 0 else first + left
        parts.append(data[start:end])
        left -= end - start
        at = end
    return b"".join(parts) or data[:SAMPLE_BYTES]


def _decode_sample(sample: bytes, codec: str) -> str:
    """Return the text without a character cut off at its end, "" for a wrong codec."""
    try:
        return codecs.getincrementaldecoder(codec)().decode(sample)
    except UnicodeDecodeError:
        return ""


def _rank(sample: bytes, languages: Sequence[str]) -> list[_Guess]:
    """Return the readings of the sample, the likeliest first, each text once.

    They are ranked by the letter frequencies of the detector and by the oddity of the
    text.
    """
    found = chardet.detect_all(
        # It would believe what a page says of itself.
        DECLARED.sub(b"", sample),
        ignore_threshold=True,
        include_encodings=[*DETECTED],
        no_match_encoding="windows-1252",
        empty_input_encoding="windows-1252",
    )
    # The more there is to see, the more an odd part of it says.
    weight = 4 + min(len(HIGH.findall(sample)), 200) / 8
    best: dict[str, _Guess] = {}
    for each in found:
        codec, language = DETECTED.get(each["encoding"] or "", ""), each["language"]
        text = _decode_sample(sample, codec) if codec else ""
        if not text:
            continue
        oddity = measure_oddity(text, codec, LETTERS.get(language or "", ""))
        score = each["confidence"] * (1 - oddity) ** weight
        score *= oddity < MOST_ODD
        score *= EXPECTED if language in languages else 1
        if score > (best[text].score if text in best else 0):
            best[text] = _Guess(codec, text, score, oddity)
    return sorted(best.values(), key=lambda guess: -guess.score)


def _choose(guesses: Sequence[_Guess], high: int) -> Sequence[_Guess]:
    """Return the first reading if it is certain, otherwise a few to choose from.

    `high`: the number of bytes beyond ASCII that the ranking is based on.
    """
    certain = [each for each in guesses[:1] if each.oddity <= FEW_ODD]
    if len(guesses) < 2:
        return certain
    first, second = guesses[:2]
    is_asian = first.codec in COMMON and second.codec in COMMON
    margin = (EAST_ASIAN_MARGIN if is_asian else MARGIN) + FEW_BYTES / max(1, high)
    is_clear = first.score >= margin * second.score
    return certain if certain and is_clear else guesses


def measure_oddity(text: str, codec: str, letters: str = "") -> float:
    """Return the share of characters beyond ASCII that do not fit their neighbours.

    `letters`: those of the language that the text would be in.
    """
    if not text:
        return 1.0
    shown = f" {text} "
    found = islice(BEYOND_ASCII.finditer(shown), MOST_CHARS)
    places = [each.start() for each in found]
    if not places:
        return 0.0
    odd = (
        _weigh(shown[at - 1], shown[at], shown[at + 1], codec, letters) for at in places
    )
    return min(1.0, sum(odd) / len(places))


def _weigh(before: str, char: str, after: str, codec: str, letters: str) -> float:
    """Return the oddness of a character between its neighbours, 1 for a misfit."""
    kind, script = unicodedata.category(char), _find_script(char)
    if kind in ("Cc", "Cn", "Co", "Cs"):
        return 2
    if script in ALPHABETS and kind.startswith("L"):
        return _is_odd_letter(before, char, after, script, letters)
    if script in ("CJK", "HANGUL") and kind == "Lo":
        return _weigh_rarity(char, codec)
    if script == "HALFWIDTH":
        return script not in (_find_script(before), _find_script(after))
    if script in ("HIRAGANA", "KATAKANA"):
        return codec in COMMON and codec not in JAPANESE
    if kind == "Mn":
        return script not in ALPHABETS[3:] or script != _find_script(before)
    return _weigh_symbol(before, char, after, kind)


@lru_cache(maxsize=10_000)
def _find_script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


def _is_odd_letter(
    before: str, char: str, after: str, script: str, letters: str
) -> bool:
    """Return whether a letter is odd between its neighbours.

    It is odd in a word of another script, as a capital after a small letter, or if its
    language does not have it.
    """
    scripts = {_find_script(each) for each in (before, after) if each.isalpha()}
    if scripts.intersection(ALPHABETS) - {script}:
        return True
    if char.isupper() and before.islower():
        return True
    is_foreign = bool(letters) and char.lower() not in letters
    return script == "LATIN" and (is_foreign or char in "ƒ")


def _weigh_rarity(char: str, codec: str) -> float:
    """Return the rarity of a character; in UTF-16, the lowest of all languages."""
    sets = [COMMON[codec]] if codec in COMMON else [*COMMON.values()]
    return min(_weigh_in_set(char, *each) for each in sets)


def _weigh_in_set(char: str, name: str, last: int) -> float:
    try:
        return 0.0 if char.encode(name)[0] <= last else 0.5
    except UnicodeEncodeError:
        return 1.0


def _weigh_symbol(before: str, char: str, after: str, kind: str) -> float:
    """Inside of a word, or a sign beside a letter that does not go with letters."""
    first, last = (
        each.isalpha() and _find_script(each) in ALPHABETS[:5]
        for each in (before, after)
    )
    if char in BESIDE_SPACE:
        return (first + last) / 2
    if first and last or kind in ("Sk", "Lm"):
        return char not in BETWEEN_LETTERS
    is_sign = kind[0] == "S" or kind == "No"
    is_usual = char in (AFTER_LETTERS if first else "°©")
    return is_sign and (first or last) and not is_usual
