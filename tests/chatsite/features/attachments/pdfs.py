"""PDFs for tests, written by hand or by pypdf."""

import io
import zlib

from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    TextStringObject,
)


def make(*pages, compressed=False):
    """A PDF with a page for each text; "" is a page without one."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b""]
    kids = []
    for text in pages:
        shown = f"BT /F1 12 Tf 20 700 Td ({text}) Tj ET" if text else ""
        stream = shown.encode("latin-1")
        stream = zlib.compress(stream) if compressed else stream
        kind = b"/Filter/FlateDecode" if compressed else b""
        objects.append(
            b"<</Length %d%s>>\nstream\n%s\nendstream" % (len(stream), kind, stream)
        )
        number = len(objects)
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R"
            b"/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
            b">>" % number
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), b" ".join(kids))
    return _write(objects)


def _write(objects):
    out, places = io.BytesIO(b""), []
    out.write(b"%PDF-1.4\n")
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for place in places:
        out.write(b"%010d 00000 n \n" % place)
    out.write(
        b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
        % (len(objects) + 1, start)
    )
    return out.getvalue()


def encrypt(data, password="secret"):
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def add_annotations(data, *annotations):
    """The PDF with annotations on its first page, each a mapping of plain values."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    page = writer.pages[0]
    rows = ArrayObject()
    for each in annotations:
        row = DictionaryObject({NameObject("/Type"): NameObject("/Annot")})
        for key, value in each.items():
            row[NameObject(key)] = _write_value(value)
        rows.append(writer._add_object(row))
    page[NameObject("/Annots")] = rows
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _write_value(value):
    if isinstance(value, list):
        return ArrayObject(map(_write_value, value))
    if isinstance(value, int):
        return NumberObject(value)
    is_name = value.startswith("/")
    return NameObject(value) if is_name else TextStringObject(value)


def field(name, value, kind="/Tx", **more):
    named = {"/Subtype": "/Widget", "/FT": kind, "/T": name, "/V": value}
    return {**named, **{f"/{key}": each for key, each in more.items()}}
