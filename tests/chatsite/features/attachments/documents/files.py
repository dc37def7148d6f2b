"""Documents for tests, written by hand."""

import io
import zipfile

XML = '<?xml version="1.0" encoding="UTF-8"?>'
TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
SLIDE = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)
IDS = f'xmlns:r="{TYPES[:-1]}"'


def pack(parts, **options):
    """A zip file of texts or bytes by their paths."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for path, data in parts.items():
            archive.writestr(path, data)
    return out.getvalue()


def relations(*named):
    """Return the relations of a part: pairs of the last word of the kind, and the
    target.
    """
    rows = (
        f'<Relationship Id="r{number}" Type="{TYPES}{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(named, start=1)
    )
    return f"{XML}<Relationships>{''.join(rows)}</Relationships>"


def paragraph(text, before=""):
    return f"<w:p>{before}<w:r><w:t>{text}</w:t></w:r></w:p>"


def make_docx(*paragraphs, body="", start=XML, **more):
    said = "".join(map(paragraph, paragraphs))
    document = f"{start}<w:document {WORD}><w:body>{said}{body}</w:body></w:document>"
    return pack(
        {
            "_rels/.rels": relations(("officeDocument", "word/document.xml")),
            "word/document.xml": document,
            **more,
        }
    )


def make_xlsx(rows, shared="", styles="", more=""):
    names = ["worksheets/s1.xml", "sharedStrings.xml", "styles.xml"]
    kinds = ["worksheet", "sharedStrings", "styles"]
    sheets = f'{more}<sheets><sheet name="Q1" sheetId="1" r:id="r1"/></sheets>'
    return pack(
        {
            "_rels/.rels": relations(("officeDocument", "/xl/workbook.xml")),
            "xl/workbook.xml": f"{XML}<workbook {SHEET} {IDS}>{sheets}</workbook>",
            "xl/_rels/workbook.xml.rels": relations(*zip(kinds, names, strict=True)),
            "xl/worksheets/s1.xml": f"{XML}<worksheet {SHEET}><sheetData>{rows}"
            "</sheetData></worksheet>",
            "xl/sharedStrings.xml": f"{XML}<sst {SHEET}>{shared}</sst>",
            "xl/styles.xml": f"{XML}<styleSheet {SHEET}>{styles}</styleSheet>",
        }
    )


def make_pptx(*slides):
    """Slides in the order of the presentation, which is not that of their names."""
    names = [f"s{len(slides) - number}.xml" for number in range(len(slides))]
    ids = "".join(
        f'<p:sldId id="{256 + number}" r:id="r{number}"/>'
        for number in range(1, len(slides) + 1)
    )
    parts = {
        "_rels/.rels": relations(("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f"{XML}<p:presentation {SLIDE} {IDS}><p:sldIdLst>{ids}"
        "</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            *(("slide", f"slides/{name}") for name in names)
        ),
    }
    for name, (text, notes) in zip(names, slides, strict=True):
        parts[f"ppt/slides/{name}"] = slide(text)
        parts[f"ppt/slides/_rels/{name}.rels"] = relations(
            ("notesSlide", f"../notesSlides/{name}")
        )
        parts[f"ppt/notesSlides/{name}"] = slide(notes)
    return pack(parts)


def slide(*lines):
    said = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
    number = '<a:p><a:fld type="slidenum"><a:t>7</a:t></a:fld></a:p>'
    return f"{XML}<p:sld {SLIDE}>{said}{number}</p:sld>"


def make_epub(*chapters, **more):
    items = "".join(
        f'<item id="c{n}" href="text/c%20{n}.xhtml"/>' for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    opf = f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>"
    container = '<container><rootfile full-path="OEBPS/a.opf"/></container>'
    parts = {"META-INF/container.xml": container, "OEBPS/a.opf": opf, **more}
    for number, text in enumerate(chapters):
        parts[f"OEBPS/text/c {number}.xhtml"] = (
            f"{XML}<!DOCTYPE html><html><head><title>Book</title></head><body>{text}"
            "</body></html>"
        )
    return pack(parts)
