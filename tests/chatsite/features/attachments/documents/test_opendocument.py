"""Documents of LibreOffice and others, as text."""

import pytest

from chatsite.features.attachments.documents import document_text
from chatsite.features.attachments.documents.opendocument import TYPES
from chatsite.features.attachments.errors import FileError

from ..test_reading import read
from . import files
from .test_documents import text_of

NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table", "draw")
)


def make(kind, body, **more):
    content = (
        f"{files.XML}<office:document-content {NAMES} "
        'xmlns:dc="http://purl.org/dc/elements/1.1/" '
        'xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<office:body>{body}</office:body></office:document-content>"
    )
    return files.pack({"mimetype": TYPES[kind], "content.xml": content, **more})


def cell(text="", repeated=1):
    said = f"<text:p>{text}</text:p>" if text else ""
    count = f'table:number-columns-repeated="{repeated}"'
    return f"<table:table-cell {count}>{said}</table:table-cell>"


def row(*cells, repeated=1):
    count = f'table:number-rows-repeated="{repeated}"'
    return f"<table:table-row {count}>{''.join(cells)}</table:table-row>"


def sheet(name, *rows):
    return f'<table:table table:name="{name}">{"".join(rows)}</table:table>'


async def test_text_is_read_with_its_lists_tabs_and_notes():
    body = (
        "<text:tracked-changes><text:p>Deleted.</text:p></text:tracked-changes>"
        "<text:h>The <text:span>plan</text:span></text:h>"
        "<text:list><text:list-item><text:p>Rent</text:p></text:list-item></text:list>"
        '<text:p>A<text:tab/>B<text:s text:c="2"/>C<text:line-break/>D</text:p>'
        "<text:p>Said<text:note><text:note-citation>1</text:note-citation>"
        "<text:note-body><text:p>By Ann.</text:p></text:note-body></text:note>."
        "</text:p>"
        "<text:p>Due<office:annotation><dc:creator>Bo</dc:creator>"
        "<dc:date>2026-01-01</dc:date><text:p>Ask</text:p></office:annotation>!"
        "</text:p>"
        "<text:p>Page <text:page-number>3</text:page-number></text:p>"
    )
    assert await text_of("a.odt", make("odt", body)) == (
        "The plan\n- Rent\nA\tB  C\nD\nSaid [By Ann.].\nDue [Ask]!\nPage"
    )


async def test_sheets_are_read_as_rows_of_cells():
    body = sheet(
        "Q1",
        row(cell("Name"), cell("", 2), cell("Sum"), cell("", 16_000)),
        row(cell("", 16_384), repeated=1_048_000),
        row(cell("x", 2), repeated=2),
    ) + sheet("Q2", row(cell("Last")))
    assert await text_of("a.ods", make("ods", body)) == (
        "## Q1\n\nName\t\t\tSum\nx\tx\nx\tx\n\n## Q2\n\nLast"
    )


async def test_rows_that_repeat_too_often_are_cut_and_counted():
    body = sheet("Q", row(cell("x"), repeated=1_002), row(cell("y", 1_001)))
    found = await read("a.ods", make("ods", body))
    assert found.text == "## Q\n\n" + "x\n" * 1_000 + "\t".join("y" * 1_000)
    assert found.left_out == "2 repeated rows, 1 repeated cell"


async def test_table_inside_of_a_cell_is_words_of_that_cell():
    inner = sheet("", row(cell("a"), cell("b")))
    outer = f"<table:table-cell>{inner}</table:table-cell>"
    assert await text_of("a.odt", make("odt", sheet("T", row(outer, cell("c"))))) == (
        "## T\n\na b\tc"
    )


async def test_slides_are_read_and_their_pictures_counted():
    body = (
        '<draw:page draw:name="One"><draw:frame><draw:text-box><text:p>Hello</text:p>'
        '</draw:text-box></draw:frame><draw:image xlink:href="Pictures/1.png"/>'
        "</draw:page><draw:page><text:p>Bye</text:p></draw:page>"
    )
    found = await read("a.odp", make("odp", body))
    assert found.text == "## One\n\nHello\n\n## Slide\n\nBye"
    assert found.left_out == "1 picture"


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("a.odt", make("ods", "<text:p>x</text:p>"), "wrong_kind"),
        ("a.odt", files.pack({"mimetype": TYPES["odt"]}), "wrong_kind"),
        ("a.odt", b"PK\x03\x04 cut", "broken"),
        ("a.odt", make("odt", ""), "no_text"),
        (
            "a.odt",
            make("odt", "", **{"META-INF/manifest.xml": "<m:encryption-data/>"}),
            "encrypted",
        ),
        ("a.ods", make("ods", sheet("Q", row(cell("x" * 50, 999), repeated=999))), ""),
    ],
)
async def test_unreadable_document_is_refused_by_its_reason(name, data, code):
    with pytest.raises(FileError) as caught:
        await read(name, data)
    assert caught.value.code == (code or "too_long")


def test_external_entities_are_not_read():
    content = "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>"
    data = files.pack({"content.xml": content})
    assert document_text.extract_text("odt", data, 99) == {"error": "broken"}
