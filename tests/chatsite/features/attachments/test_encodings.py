"""Encodings of texts: found or asked for, never guessed wrong."""

import time

import pytest

from chatsite.features.attachments import encodings, reading
from chatsite.features.attachments.errors import UnsureError
from memory.transcript import TextError

from ....patience import PATIENCE
from .test_reading import read
from .written_files import WRITTEN

# Of the written ones, as many may be questions.
MOST_ASKED = 10
DECLARED = [
    ("iso-8859-1", "<meta charset=iso-8859-1><p>Tür", "cp1252"),
    ("shift_jis", '<meta charset="Shift_JIS"><p>価格', "cp932"),
    ("koi8-r", '<?xml version="1.0" encoding="KOI8-R"?><a>да</a>', "koi8_r"),
    ("euc_jp", "# -*- coding: euc-jp -*-\nname = '価格'\n", "euc_jp"),
]


def find_texts(data, languages=()):
    codecs = [encodings.find_marked(data)]
    codecs = [*filter(None, codecs)] or encodings.find_encodings(data, languages)
    return [encodings.decode(data, codec) for codec in codecs]


class TestFindEncodings:
    @pytest.mark.parametrize("languages", [(), ("en",), ("zh", "en"), ("ja",), ("de",)])
    def test_written_files_are_right_or_asked(self, languages):
        assert len(WRITTEN) == 60
        asked = 0
        for language, codec, text in WRITTEN:
            texts = find_texts(text.encode(codec), languages)
            assert text in texts, (language, codec, text, texts)
            asked += len(texts) > 1
        assert asked <= MOST_ASKED

    @pytest.mark.parametrize(
        ("data", "text"),
        [
            (b"21 \xb0C\n", "21 °C\n"),
            (b"Caf\xe9\n", "Café\n"),
            (b"2 \x80 f\xfcr J\xf6rg", "2 € für Jörg"),
            ("L’été—déjà".encode("cp1252"), "L’été—déjà"),
        ],
    )
    def test_few_letters_are_enough_where_others_would_be_odd(self, data, text):
        assert text in find_texts(data)

    def test_language_of_the_page_comes_first(self):
        data = "商品,価格\n机,8000\n".encode("euc_jp")
        assert encodings.find_encodings(data, ["ja"])[0] == "euc_jp"
        assert encodings.find_encodings(data, ["zh"])[0] == "gb18030"

    def test_longer_text_is_not_asked_about(self):
        for codec, text in (
            ("gb18030", "明天早上九点开会，"),
            ("cp949", "회의는 세 시에 "),
        ):
            assert encodings.find_encodings((text * 20).encode(codec)) == [codec]

    @pytest.mark.parametrize(("codec", "text", "found"), DECLARED)
    def test_declared_encoding_is_believed_where_it_fits(self, codec, text, found):
        assert encodings.find_encodings(text.encode(codec)) == [found]

    @pytest.mark.parametrize("declared", ["gb2312", "utf-8", "nonsense"])
    def test_declared_encoding_that_is_wrong_is_not_believed(self, declared):
        text = f"<meta charset={declared}><p>Grüße aus Köln für Jörg"
        assert find_texts(text.encode("cp1252")) == [text]

    @pytest.mark.parametrize(
        "data",
        [
            b"BM" + b"a\0" * 50,
            bytes(range(1, 256)) * 4,
            ("会议纪要" * 20).encode() + b"\xff",
            "café ".encode() * 50 + b"\xe9",
        ],
    )
    def test_bytes_that_are_no_text_have_no_encoding(self, data):
        assert encodings.find_encodings(data) == []

    @pytest.mark.parametrize(
        "unit", [b"\xe9", b"\xb0\xa1", b"a\x00", b"a\xe9\n", b"\x1b$B"]
    )
    def test_time_grows_with_the_file(self, unit):
        def spend(size):
            start = time.process_time()
            encodings.find_encodings(unit * (size // len(unit)))
            return time.process_time() - start

        small, large = spend(500_000), spend(4_000_000)
        assert large < max(0.3 * PATIENCE, 24 * small)


class TestFindCodec:
    @pytest.mark.parametrize(
        ("label", "codec"),
        [
            ("ISO-8859-1", "cp1252"),
            ("gb2312", "gb18030"),
            ("x-sjis", "cp932"),
            ("ks_c_5601-1987", "cp949"),
            ("UTF8", "utf-8"),
            ("Windows-31J", "cp932"),
        ],
    )
    def test_labels_of_the_web_name_a_codec(self, label, codec):
        assert encodings.find_codec(label) == codec

    @pytest.mark.parametrize("label", ["punycode", "unicode_escape", "zip", "x", "\0"])
    def test_other_codecs_are_not_used(self, label):
        assert encodings.find_codec(label) == ""


class TestDecodePage:
    @pytest.mark.parametrize(
        ("data", "label", "text"),
        [
            ("Grüße".encode("cp1252"), "iso-8859-1", "Grüße"),
            ("価格は千円です。".encode("cp932"), "", "価格は千円です。"),
            ("Привет, как дела?".encode("koi8-r"), "utf-8", "Привет, как дела?"),
            ("Grüße".encode("utf-16"), "utf-8", "Grüße"),
            ("Grüße für Jörg".encode(), "nonsense", "Grüße für Jörg"),
        ],
    )
    def test_page_is_read_as_it_says_or_as_it_is(self, data, label, text):
        assert encodings.decode_page(data, label) == text

    def test_damaged_page_stays_in_its_encoding(self):
        data = "Grüße aus Köln. ".encode() * 30 + b"\xff" + "für".encode()
        assert encodings.decode_page(data, "utf-8").endswith("\ufffdfür")

    def test_doubt_is_said_in_the_text(self):
        data = "商品,価格\n".encode("euc_jp")
        first, _, rest = encodings.decode_page(data).partition("\n")
        assert first.startswith("[The encoding is not known; this was read as")
        assert rest
        language = b"<html lang=ja>"
        assert "価格" in encodings.decode_page(language + data)


class TestRead:
    async def test_encoding_is_named_beside_the_text(self):
        found = await read("a.csv", "Straße;Größe\nWeg;10\n".encode("cp1252"))
        assert found.text == "Straße;Größe\nWeg;10\n"
        assert found.encoding == "Windows-1252"
        assert (await read("a.csv", "Straße".encode())).encoding == ""

    async def test_doubt_is_a_question_with_a_line_of_each_reading(self):
        data = "id,n\n1,a\n商品,価格\n机,8000\n".encode("euc_jp")
        with pytest.raises(UnsureError) as caught:
            await read("a.csv", data)
        previews = {each.name: each.preview for each in caught.value.readings}
        assert previews["EUC-JP"] == "商品,価格"
        assert 2 <= len(previews) <= 3
        chosen = reading.ReadingHints(encoding="euc_jp")
        found = await read("a.csv", data, hints=chosen)
        assert found.text == data.decode("euc_jp")

    async def test_long_file_in_doubt_is_refused(self, monkeypatch):
        monkeypatch.setattr(reading, "MOST_ASKED_BYTES", 5)
        with pytest.raises(TextError) as caught:
            await read("a.csv", "商品,価格\n".encode("euc_jp"))
        assert caught.value.code == "wrong_encoding"

    async def test_letter_without_a_name_of_its_encoding_is_read(self):
        head = b"From: a@example.org\r\nSubject: x\r\n"
        body = "Grüße aus Köln für Jörg".encode("cp1252")
        text = (await read("a.eml", head + b"\r\n" + body)).text
        assert text.endswith("Grüße aus Köln für Jörg")
        said = head + b"Content-Type: text/plain; charset=x-unknown\r\n\r\n"
        assert (await read("a.eml", said + body)).text.endswith("für Jörg")
