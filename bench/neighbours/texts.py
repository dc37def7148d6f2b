"""Texts and files as long as they may be, and as hard to read as they can be."""

import json
import uuid
import zlib

# Of a typed message (MESSAGE_MAX_CHARS), and of a message that is imported.
TYPED, IMPORTED = 32_000, 200_000
# Each is repeated: what a parser of Markdown has to keep in mind, or looks back for.
UNITS = (
    *("[", "![", "[a](", "[a]: b\n", "<a ", "<!--", "&#x", "`", "``a", "$", "$$a "),
    *("*a_ ", "**a ", "~~a", "_a*b_", "> ", ">>a\n", "- ", "1. a\n ", "   - a\n"),
    *("|a", "|a|b|\n|-|-|\n", "| a | b |\n", "\\", "http://a.b/(", "a@b.", "[^1]"),
)
FILLER = "and then we talked on and on " * 200


def repeat(unit: str, chars: int, end: str = "") -> str:
    return (unit * (chars // len(unit) + 1))[: chars - len(end)] + end


def write_hostile(kind: int, chars: int = TYPED - 100) -> str:
    """Markdown of which each kind repeats something else."""
    return repeat(UNITS[kind % len(UNITS)], chars, "x")


def write_slow_text(number: int) -> str:
    """Write a text for which patterns with two ways to match take long: many questions
    that end with none, a rule with a gap; and between them the parts that make a
    summary due.
    """
    text = (
        f"{number} " + repeat("?", 19_000, "x"),
        f"{number} always be nice" + repeat(" ", TYPED - 100, "x"),
        f"{number} {FILLER}",
    )
    return text[number % 3]


def make_talk(messages: int, chars: int, write: object = None, count: int = 1) -> bytes:
    """`count` conversations in the form of another site's export, of as many messages
    of that size each."""
    words = "captain minutes harbour pier ferry tide number "
    talks = []
    for _ in range(count):
        talk = [
            {
                "sender": ("human", "assistant")[number % 2],
                "created_at": "2026-01-01T00:00:00Z",
                "text": write(number, chars)
                if write
                else repeat(f"{words}{number} ", chars),
            }
            for number in range(messages)
        ]
        name = uuid.uuid4().hex
        talks.append({"uuid": name, "name": name, "chat_messages": talk})
    return json.dumps(talks).encode()


def make_slow_pdf() -> bytes:
    """A small file of 900 pages that each draw for seconds and have no text."""
    drawn = b"BT /F1 1 Tf 1 0 0 1 5 5 Tm 3 0 Td ET q 1 0 0 1 0 0 cm Q\n" * 40_000
    stream, pages = zlib.compress(drawn), 900
    kids = b" ".join(b"%d 0 R" % (number + 4) for number in range(pages))
    font = b"<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << /Font "
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (pages, kids),
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream"
        % (len(stream), stream),
        *[page + font + b" >> /Contents 3 0 R >>"] * pages,
    ]
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    size, start = len(objects) + 1, len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % size
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer << /Size %d /Root 1 0 R >>\n" % size
    return data + b"startxref\n%d\n%%%%EOF" % start
