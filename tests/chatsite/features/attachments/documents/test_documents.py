"""Documents as text; those that mean harm end in a sentence."""

from io import BytesIO

import pytest

from chatsite.features.attachments import reading as attachments
from chatsite.features.attachments.documents import reading as documents
from memory.transcript import WHOLE_CHARS

from ..test_reading import read, refusal
from . import files

LETTER = b"""From: Ann <ann@example.org>\r
To: bob@example.org\r
Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=q\r
\r
--q\r
Content-Type: text/html; charset=utf-8\r
\r
<p>Hi <b>you</b></p><script>alert(1)</script>\r
--q\r
Content-Type: application/zip; name="all.zip"\r
Content-Disposition: attachment; filename="all.zip"\r
Content-Transfer-Encoding: base64\r
\r
UEsDBA==\r
--q--\r
"""


async def text_of(name, data):
    return (await read(name, data)).text


async def document_of(kind, data):
    """The text of a document, or the code of its refusal."""
    leave = attachments.hold_nothing
    try:
        return await documents.read_document_file(1, "a", kind, BytesIO(data), leave)
    except documents.FileError as error:
        return error.code


class TestWord:
    async def test_headings_lists_tables_and_notes_are_text(self):
        heading = '<w:pPr><w:pStyle w:val="Heading2"/></w:pPr>'
        item = "<w:pPr><w:numPr/></w:pPr>"
        cells = "".join(f"<w:tc>{files.paragraph(said)}</w:tc>" for said in "ab")
        body = files.paragraph("Plan", heading) + files.paragraph("One", item)
        body += f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
        body += "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
        notes = {
            "word/_rels/document.xml.rels": files.relations(
                ("footnotes", "footnotes.xml"), ("image", "media/a.png")
            ),
            "word/footnotes.xml": f"<w:footnotes {files.WORD}>"
            f"{files.paragraph('See there')}</w:footnotes>",
        }
        data = files.make_docx("世界 &amp; all", body=body, **notes)
        assert await text_of("a.docx", data) == (
            "世界 & all\n## Plan\n- One\na\tb\n\n## Footnotes\n\nSee there"
        )

    async def test_a_text_that_is_there_in_two_forms_is_read_once(self):
        box = f"<w:txbxContent>{files.paragraph('Boxed')}</w:txbxContent>"
        both = f"<mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
        space = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
        body = f"<mc:AlternateContent {space}>{both}</mc:AlternateContent>"
        assert await text_of("a.docx", files.make_docx(body=body)) == "Boxed"


class TestExcel:
    async def test_cells_are_in_their_columns(self):
        shared = "<si><t>Name</t><rPh><t>ne</t></rPh></si><si><r><t>A</t></r></si>"
        rows = (
            '<row><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>'
            '<row><c r="B2" t="b"><v>1</v></c><c t="inlineStr"><is><t>x\ny</t></is></c>'
            "<c><f>1+1</f><v>2</v></c></row><row/>"
        )
        found = await text_of("a.xlsx", files.make_xlsx(rows, shared))
        assert found == "## Q1\n\nName\t\tA\n\tTRUE\tx y\t2"

    async def test_dates_are_dates(self):
        styles = (
            '<numFmts><numFmt numFmtId="164" formatCode="d/m"/>'
            '<numFmt numFmtId="165" formatCode="0.0 &quot;days&quot;"/></numFmts>'
            '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
            '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
            '<xf numFmtId="164"/><xf numFmtId="165"/></cellXfs>'
        )
        numbers = ("46082", "46082", "46082.604166666664", "46082")
        cells = [f'<c s="{n}"><v>{value}</v></c>' for n, value in enumerate(numbers)]
        rows = f"<row>{''.join(cells)}</row>"
        found = await text_of("a.xlsx", files.make_xlsx(rows, styles=styles))
        assert found == "## Q1\n\n46082\t2026-03-01\t2026-03-01 14:30:00\t46082"


class TestOthers:
    async def test_slides_come_in_their_order_with_their_notes(self):
        data = files.make_pptx(("First", "say this"), ("Second", ""))
        assert await text_of("a.pptx", data) == (
            "## Slide 1\n\nFirst\n\nNotes:\nsay this\n\n## Slide 2\n\nSecond\n\nNotes:"
        )

    async def test_the_chapters_of_a_book_come_in_their_order(self):
        data = files.make_epub("<h1>One</h1><p>a<br/>b", "<ul><li>c</li></ul>")
        assert await text_of("a.epub", data) == "# One\na\nb\n\n- c"
        rights = {"META-INF/rights.xml": "<rights/>"}
        assert await refusal("a.epub", files.make_epub("x", **rights)) == "encrypted"

    async def test_a_letter_is_its_words_and_names_what_is_attached(self):
        assert await text_of("a.eml", LETTER) == (
            "From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: Grüße\n\n"
            "Hi you\n\nAttachment: all.zip"
        )
        assert await text_of("a.eml", b"no letter") == "no letter"

    async def test_a_web_page_is_its_source_until_that_is_too_long(self):
        page = b"<p>Hello</p>"
        assert await text_of("a.html", page) == page.decode()
        script = b"<script>%s</script>" % (b"x" * WHOLE_CHARS)
        whole = b"<html><head>" + script + b"<body><pre>a\n  b</pre>" + page
        assert await text_of("a.html", whole) == "a\n  b\nHello"
        assert await refusal("a.html", b"<p>" + b"x" * WHOLE_CHARS) == "too_long"


class TestHarm:
    async def test_a_name_that_lies_is_refused(self):
        docx = files.make_docx("Hello")
        assert await refusal("a.docx", b"Only text") == "wrong_kind"
        assert await refusal("a.docx", files.pack({"a.txt": "x"})) == "wrong_kind"
        assert await refusal("a.epub", docx) == "wrong_kind"
        assert await refusal("a.zip", docx) == "not_text"
        assert await refusal("a.docx", b"\xd0\xcf\x11\xe0" + bytes(600)) == "encrypted"
        assert await refusal("a.docx", docx[:90]) == "broken"
        assert await refusal("a.docx", files.make_docx()) == "no_text"

    @pytest.mark.parametrize(
        "entities",
        [
            '<!ENTITY x SYSTEM "file:///etc/hostname">',
            '<!ENTITY x SYSTEM "http://127.0.0.1/">',
            '<!ENTITY a "lol"><!ENTITY x "&a;&a;&a;&a;&a;&a;&a;&a;">',
            '<!ENTITY % p SYSTEM "http://127.0.0.1/"> %p; <!ENTITY x "y">',
        ],
    )
    async def test_entities_are_refused(self, entities):
        start = f"{files.XML}<!DOCTYPE w:document [{entities}]>"
        data = files.make_docx("&x;", start=start)
        assert await refusal("a.docx", data) == "broken"

    async def test_a_bomb_ends_at_the_limit(self):
        data = files.make_docx("Hello" + " " * 120_000_000)
        assert len(data) < 1_000_000
        assert await refusal("a.docx", data) == "too_complex"
        # Parts that are there several times are no way around.
        rows = '<row><c t="s"><v>0</v></c></row>' * 1_000
        shared = f"<si><t>{'x' * 1_000_000}</t></si>"
        assert await refusal("a.xlsx", files.make_xlsx(rows, shared)) == "too_long"

    async def test_a_bomb_ends_at_the_limit_of_memory(self, settings):
        settings.PDF_MEMORY_MB = 100
        data = files.make_docx("x" * 90_000_000)
        assert await refusal("a.docx", data) == "too_complex"

    async def test_a_zip_of_zips_is_not_opened(self):
        bomb = files.pack({"0": bytes(10_000_000)})
        inner = {f"word/embeddings/{n}.zip": bomb for n in range(50)}
        assert await text_of("a.docx", files.make_docx("Hello", **inner)) == "Hello"

    async def test_many_parts_are_refused(self):
        many = {f"{number}": "" for number in range(20_001)}
        assert await refusal("a.docx", files.pack(many)) == "too_complex"

    @pytest.mark.parametrize(
        "page",
        ["<" * 300_000, "<!--" * 100_000, "<a b=" * 100_000, "<p>" * 100_000 + "x"],
        ids=["tags", "comments", "attributes", "blocks"],
    )
    async def test_hostile_markup_takes_a_moment(self, page):
        found = await document_of("html", page.encode())
        assert found in ("too_long", "no_text", "x")

    async def test_parts_with_a_password_are_refused(self, monkeypatch):
        data = bytearray(files.make_docx("Hello"))
        # The flag of each entry, where it is and in the list at the end.
        for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            at = data.find(mark)
            while at >= 0:
                data[at + place] |= 1
                at = data.find(mark, at + 4)
        assert await refusal("a.docx", bytes(data)) == "encrypted"

    async def test_paths_stay_inside_the_file(self):
        out = {"_rels/.rels": files.relations(("officeDocument", "../../etc/hostname"))}
        assert await refusal("a.docx", files.make_docx("x", **out)) == "wrong_kind"
