"""Texts of office programs besides plain paragraphs and cells: read once and in order,
or counted.
"""

import pytest

from ..test_reading import read
from . import files
from .test_documents import text_of

MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
DRAWN = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
CHART = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'


def run(text):
    return f"<w:r><w:t>{text}</w:t></w:r>"


def word(body, *related, **parts):
    """A Word file of a body, and other parts by their kind and name."""
    beside = {
        "word/_rels/document.xml.rels": files.relations(*related),
        **{f"word/{name}": text for name, text in parts.items()},
    }
    return files.make_docx(body=body, **(beside if related else {}))


def part(tag, *paragraphs):
    said = "".join(map(files.paragraph, paragraphs))
    return f"<w:{tag} {files.WORD}>{said}</w:{tag}>"


def chart(title, series, names, values):
    def points(said):
        return "".join(f"<c:pt><c:v>{each}</c:v></c:pt>" for each in said)

    return (
        f"<c:chartSpace {CHART} {DRAWN}>"
        f"<c:title><a:p><a:t>{title}</a:t></a:p></c:title>"
        f"<c:ser><c:tx>{points([series])}</c:tx><c:cat>{points(names)}</c:cat>"
        f"<c:val>{points(values)}</c:val></c:ser></c:chartSpace>"
    )


class TestTrackedChanges:
    async def test_moved_paragraph_is_read_once_where_it_went(self):
        marked = "<w:pPr><w:rPr><w:moveFrom/></w:rPr></w:pPr>"
        body = (
            f"<w:p>{marked}<w:moveFromRangeStart/><w:moveFrom>{run('The rent is due.')}"
            "</w:moveFrom><w:moveFromRangeEnd/></w:p>"
            f"{files.paragraph('Between.')}"
            f"<w:p><w:moveTo>{run('The rent is due.')}</w:moveTo></w:p>"
        )
        assert await text_of("a.docx", word(body)) == "Between.\nThe rent is due."

    async def test_insertions_are_in_and_deletions_out(self):
        body = (
            f"<w:p>{run('We meet ')}<w:del><w:r><w:delText>on Monday</w:delText></w:r>"
            f"</w:del><w:ins>{run('on Friday')}</w:ins>{run('.')}</w:p>"
        )
        assert await text_of("a.docx", word(body)) == "We meet on Friday."

    async def test_paragraphs_whose_mark_was_deleted_are_one(self):
        marked = "<w:pPr><w:rPr><w:del/></w:rPr></w:pPr>"
        body = f"<w:p>{marked}{run('One ')}</w:p>{files.paragraph('line.')}"
        assert await text_of("a.docx", word(body)) == "One line."


class TestWordParts:
    async def test_headers_footers_and_endnotes_are_read_once_each(self):
        data = word(
            files.paragraph("Body"),
            *(("header", "h1.xml"), ("header", "h2.xml"), ("footer", "f1.xml")),
            ("endnotes", "e.xml"),
            **{"h1.xml": part("hdr", "Draft 3"), "h2.xml": part("hdr", "Draft 3")},
            **{"f1.xml": part("ftr", "Harbour office"), "e.xml": part("e", "See ten")},
        )
        assert await text_of("a.docx", data) == (
            "Body\n\n## Headers\n\nDraft 3\n\n## Footers\n\nHarbour office\n\n"
            "## Endnotes\n\nSee ten"
        )

    async def test_numbers_of_pages_are_left_out(self):
        def step(kind):
            return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

        def field(instruction, shown):
            said = f"<w:r><w:instrText> {instruction} </w:instrText></w:r>"
            middle, end = step("separate"), step("end")
            return step("begin") + said + middle + run(shown) + end

        body = (
            f"<w:p>{field('PAGE', '7')}{field('REF a', 'chapter two')}"
            f'<w:fldSimple w:instr=" NUMPAGES ">{run("9")}</w:fldSimple></w:p>'
        )
        assert await text_of("a.docx", word(body)) == "chapter two"

    async def test_form_fields_and_controls_have_their_values(self):
        data = '<w:textInput><w:default w:val="x"/></w:textInput>'
        box = '<w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox>'
        choices = (
            '<w:ddList><w:result w:val="1"/><w:listEntry w:val="tea"/>'
            '<w:listEntry w:val="coffee"/></w:ddList>'
        )

        def field(data, shown=""):
            return (
                f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{data}</w:ffData>'
                "</w:fldChar></w:r>"
                "<w:r><w:instrText>FORMTEXT</w:instrText></w:r>"
                f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{shown}'
                '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
            )

        body = (
            f"<w:p>{field(data, run('Nilsson'))}</w:p>"
            f"<w:p>{field(box)}{run('paid')}</w:p>"
            f"<w:p>{field(choices)}</w:p>"
            "<w:sdt><w:sdtPr><w:text/></w:sdtPr><w:sdtContent>"
            f"{files.paragraph('Oslo')}</w:sdtContent></w:sdt>"
        )
        found = await text_of("a.docx", word(body))
        assert found == "Nilsson\n☒ paid\ncoffee\nOslo"

    async def test_readings_stand_behind_their_words(self):
        ruby = (
            f"<w:r><w:ruby><w:rt>{run('おおさか')}</w:rt><w:rubyBase>{run('大阪')}"
            "</w:rubyBase></w:ruby></w:r>"
        )
        body = f"<w:p>{ruby}{run('へ行く')}</w:p>"
        assert await text_of("a.docx", word(body)) == "大阪(おおさか)へ行く"

    async def test_symbols_are_what_their_font_shows(self):
        def sym(font, code):
            return f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'

        body = (
            f"<w:p>{sym('Wingdings', 'F0FC')}{sym('Symbol', 'F06D')}"
            f"{sym('Arial', '20AC')}{sym('Webdings', 'F063')}</w:p>"
        )
        found = await read("a.docx", word(body))
        assert found.text == "✓μ€\ufffd"
        assert found.left_out == "1 symbol"

    @pytest.mark.parametrize("nested", [False, True])
    async def test_choice_is_read_in_one_of_its_forms(self, nested):
        inner = f"<mc:AlternateContent><mc:Choice>{run('in')}</mc:Choice><mc:Fallback>"
        inner += f"{run('in')}</mc:Fallback></mc:AlternateContent>"
        said = inner if nested else run("in")
        body = (
            f"<w:p><mc:AlternateContent {MC}><mc:Choice>{run('A ')}</mc:Choice>"
            f"<mc:Choice>{run('B ')}</mc:Choice><mc:Fallback>{said}</mc:Fallback>"
            "</mc:AlternateContent><mc:AlternateContent "
            f"{MC}><mc:Fallback>{said}</mc:Fallback></mc:AlternateContent>{run('.')}</w:p>"
        )
        assert await text_of("a.docx", word(body)) == "A in."

    async def test_charts_and_diagrams_are_words_and_pictures_are_counted(self):
        diagram = f"<d><a:p {DRAWN}><a:r><a:t>Buy</a:t></a:r></a:p></d>"
        data = word(
            files.paragraph("Report"),
            *(("chart", "c.xml"), ("diagramData", "d.xml"), ("image", "a.png")),
            *(("image", "b.png"), ("image", "a.png"), ("package", "x.xlsx")),
            **{"c.xml": chart("Sales", "2024", ["May", "June"], [3, 4.5])},
            **{"d.xml": diagram},
        )
        found = await read("a.docx", data)
        assert found.text == (
            "Report\n\n## Chart\n\nSales\n2024: May 3; June 4.5\n\n## Diagram\n\nBuy"
        )
        assert found.left_out == "2 pictures, 1 embedded file"

    async def test_deep_nesting_is_refused(self):
        deep = "<w:sdt>" * 100_000
        found = await read("a.docx", word(files.paragraph("x")))
        assert found.left_out == ""
        with pytest.raises(Exception, match="too much time or memory"):
            await read("a.docx", files.make_docx(body=deep))


class TestWorkbook:
    @pytest.mark.parametrize(
        ("code", "value", "shown"),
        [
            ("[h]:mm", "1.75", "42:00"),
            ("[h]:mm:ss", "0.5000115740740741", "12:00:01"),
            ("[mm]:ss", "0.0625", "90:00"),
            ("[h]:mm", "-0.25", "-6:00"),
            ("00000", "7", "00007"),
            ("000-0000", "1234567", "123-4567"),
            ('"A-"0000', "42", "A-0042"),
            ("000", "12345", "12345"),
            ("0.0%", "0.125", "12.5%"),
            ("General", "1.1000000000000001", "1.1"),
            ("General", "0.30000000000000004", "0.3"),
            ("General", "1.1000000000000001E-5", "1.1E-05"),
            ("#,##0", "1234567", "1234567"),
            ("0.00", "2.5", "2.5"),
            ("yyyy\\-mm\\-dd", "46082", "2026-03-01"),
            ("[Red]0;[Blue]-0", "5", "5"),
        ],
    )
    async def test_numbers_are_as_their_format_shows_them(self, code, value, shown):
        code = code.replace('"', "&quot;")
        styles = (
            f'<numFmts><numFmt numFmtId="170" formatCode="{code}"/></numFmts>'
            '<cellXfs><xf numFmtId="0"/><xf numFmtId="170"/></cellXfs>'
        )
        rows = f'<row><c r="A1" s="1"><v>{value}</v></c></row>'
        found = await text_of("a.xlsx", files.make_xlsx(rows, styles=styles))
        assert found == f"## Q1\n\n{shown}"

    async def test_formula_without_a_result_is_shown(self):
        rows = (
            '<row><c r="A1"><f>SUM(B1:B9)</f></c><c r="B1"><f>1+1</f><v>2</v></c>'
            '<c r="C1"><f t="shared" si="0"/><v></v></c></row>'
        )
        found = await read("a.xlsx", files.make_xlsx(rows))
        assert found.text == "## Q1\n\n=SUM(B1:B9)\t2\t=…"
        assert found.left_out == "2 formulas without a result"

    async def test_phonetic_text_is_no_part_of_a_cell(self):
        rows = (
            '<row><c r="A1" t="inlineStr"><is><t>京都</t>'
            "<rPh><t>キョウト</t></rPh></is></c></row>"
        )
        assert await text_of("a.xlsx", files.make_xlsx(rows)) == "## Q1\n\n京都"

    async def test_hidden_sheets_headers_comments_and_charts_are_there(self):
        data = {
            "_rels/.rels": files.relations(("officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f"<workbook {files.SHEET} {files.IDS}><sheets>"
            '<sheet name="Prices" state="veryHidden" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": files.relations(("worksheet", "s.xml")),
            "xl/s.xml": f"<worksheet {files.SHEET}><sheetData>"
            "<row><c><v>1</v></c></row>"
            '</sheetData><headerFooter><oddHeader>&amp;C&amp;"Arial"Draft</oddHeader>'
            "</headerFooter></worksheet>",
            "xl/_rels/s.xml.rels": files.relations(
                ("comments", "c.xml"), ("drawing", "d.xml")
            ),
            "xl/c.xml": '<comments><comment ref="A1"><text><r><t>too low</t></r></text>'
            "</comment></comments>",
            "xl/d.xml": f"<d><a:p {DRAWN}><a:r><a:t>Boxed</a:t></a:r></a:p></d>",
            "xl/_rels/d.xml.rels": files.relations(("chart", "h.xml")),
            "xl/h.xml": chart("Sales", "2024", ["May"], [3]),
        }
        assert await text_of("a.xlsx", files.pack(data)) == (
            "## Prices (hidden)\n\n1\nHeader: Draft\nComment A1: too low\n\nBoxed\n\n"
            "## Chart\n\nSales\n2024: May 3"
        )


class TestSlides:
    async def test_hidden_slide_is_named_and_its_comments_are_read(self):
        data = {
            "_rels/.rels": files.relations(("officeDocument", "ppt/p.xml")),
            "ppt/p.xml": f"<p:presentation {files.SLIDE} {files.IDS}><p:sldIdLst>"
            '<p:sldId id="256" r:id="r1"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/p.xml.rels": files.relations(("slide", "s.xml")),
            "ppt/s.xml": files.slide("Plan B").replace("<p:sld ", '<p:sld show="0" '),
            "ppt/_rels/s.xml.rels": files.relations(
                ("comments", "c.xml"), ("image", "i.png")
            ),
            "ppt/c.xml": f"<p:cmLst {files.SLIDE}><p:cm>"
            "<p:text>Too small</p:text></p:cm></p:cmLst>",
        }
        found = await read("a.pptx", files.pack(data))
        assert found.text == "## Slide 1 (hidden)\n\nPlan B\n\nComments:\nToo small"
        assert found.left_out == "1 picture"
