"""Files as text, and a sentence for each that is none."""

import asyncio
import codecs
from io import BytesIO

import pytest

from chatsite.features.attachments import encodings, pdf, processes, reading
from chatsite.ops import processor_time
from memory.transcript import WHOLE_CHARS, TextError

from ....patience import PATIENCE
from . import pdfs

CHINESE = "会议纪要:下周三下午三点,在二号会议室讨论预算。\n" * 20
ENCODED = [
    CHINESE.encode(),
    codecs.BOM_UTF8 + CHINESE.encode(),
    codecs.BOM_UTF16_LE + CHINESE.encode("utf-16-le"),
    codecs.BOM_UTF16_BE + CHINESE.encode("utf-16-be"),
    codecs.BOM_UTF32_LE + CHINESE.encode("utf-32-le"),
    CHINESE.encode("gb18030"),
]


async def read(name, data, user_id=1, **values):
    return await reading.read_file(user_id, name, BytesIO(data), len(data), **values)


async def read_pdf(user_id, data=b""):
    return await pdf.read_pdf(user_id, BytesIO(data), reading.hold_nothing)


async def refusal(name, data, **values):
    with pytest.raises(TextError) as caught:
        await read(name, data, **values)
    assert caught.value.detail.endswith(".")
    return caught.value.code


class TestText:
    @pytest.mark.parametrize("data", ENCODED)
    async def test_text_is_read_in_its_encoding(self, data):
        found = await read("notes.txt", data)
        assert found.text == CHINESE
        assert found.size == len(data)

    @pytest.mark.parametrize("data", ENCODED)
    async def test_text_is_the_same_wherever_a_piece_ends(self, data, monkeypatch):
        monkeypatch.setattr(encodings, "AT_ONCE", 7)
        assert (await read("notes.txt", data)).text == CHINESE
        code = await refusal("notes.txt", data + b"\xff")
        assert code in ("wrong_encoding", "not_text")

    async def test_letters_stay_as_they_are(self):
        text = "a\r\n\tb \u2028 e\u0301 🤝\x0c\n"
        assert (await read("a.md", text.encode())).text == text

    @pytest.mark.parametrize(
        "name", ["a.py", "b.csv", "c.json", "Makefile", "x.unknown"]
    )
    async def test_any_text_may_be_attached_whatever_its_name(self, name):
        assert (await read(name, b"hello")).name == name


class TestNoText:
    @pytest.mark.parametrize(
        ("data", "code"),
        [
            (b"", "empty"),
            (b" \n\t", "empty"),
            (b"PK\x03\x04" + b"a" * 50, "not_text"),
            (b"BM" + b"a\0" * 50, "not_text"),
            (b"hello\0world", "not_text"),
            (bytes(range(32)) * 20, "not_text"),
            ("Größe, Façade, ÿ, ¡olé!".encode("latin-1"), "unsure_encoding"),
            ("Привет, как дела?".encode() + b"\xff", "wrong_encoding"),
            (codecs.BOM_UTF16_LE + b"\x41\xd8a", "wrong_encoding"),
            (b"x" * (WHOLE_CHARS + 1), "too_long"),
        ],
    )
    async def test_file_without_text_is_refused_with_advice(self, data, code):
        assert await refusal("notes.txt", data) == code

    async def test_a_file_that_is_too_large_is_not_looked_at(self, settings):
        settings.ATTACHMENT_MAX_MB = 1
        assert await refusal("a.txt", b"x" * 1024 * 1024 + b"x") == "too_large"

    async def test_a_name_that_lies_is_refused(self):
        assert await refusal("notes.txt", pdfs.make("Hi")) == "wrong_kind"
        assert await refusal("paper.pdf", b"Only text") == "wrong_kind"


class TestPdf:
    async def test_pages_are_read_in_order(self):
        data = pdfs.make("First page", "", "Third page", compressed=True)
        assert (await read("a.pdf", data)).text == "First page\n\nThird page"

    async def test_unreadable_pdf_is_refused_with_advice(self):
        whole = pdfs.make("Hello")
        assert await refusal("a.pdf", pdfs.encrypt(whole)) == "encrypted"
        assert await refusal("a.pdf", pdfs.make("", "")) == "no_text"
        assert await refusal("a.pdf", whole[:60]) == "broken"

    async def test_pdf_with_an_empty_password_is_read(self):
        data = pdfs.encrypt(pdfs.make("Open"), password="")
        assert (await read("a.pdf", data)).text == "Open"

    async def test_pdf_with_ten_thousand_pages_is_refused(self, monkeypatch):
        monkeypatch.setattr(processes, "WAITS", processes.WAITS * PATIENCE)
        data = pdfs.make(*["page"] * 10_000)
        assert await refusal("a.pdf", data) == "too_many_pages"

    async def test_pdf_with_too_much_text_is_refused(self):
        data = pdfs.make("word " * 30)
        assert await refusal("a.pdf", data, chars=100) == "too_long"

    async def test_filled_form_has_its_values_behind_the_page(self):
        data = pdfs.add_annotations(
            pdfs.make("Family name", "Second page"),
            pdfs.field("name", "Öberg 世界"),
            pdfs.field("empty", ""),
            pdfs.field("pin", "1234", Ff=1 << 13),
            pdfs.field("lives alone", "/Yes", "/Btn"),
            pdfs.field("smokes", "/Off", "/Btn"),
            pdfs.field("colour", "/green", "/Btn", Ff=1 << 15),
            pdfs.field("send", "/Yes", "/Btn", Ff=1 << 16),
            pdfs.field(
                "country", "no", "/Ch", Opt=[["se", "Sweden"], ["no", "Norway"]]
            ),
            pdfs.field("f7", "two\rlines", TU="Remarks"),
            {"/Subtype": "/FreeText", "/Contents": "Typed onto the page"},
            {"/Subtype": "/Text", "/Contents": "Is that so?"},
            {"/Subtype": "/Link", "/Contents": "Go there"},
            {"/Contents": "Of no kind"},
        )
        found = await read("a.pdf", data)
        assert found.text == (
            "Family name\n\nname: Öberg 世界\nlives alone: ☒ yes\nsmokes: ☐ no\n"
            "colour: green\ncountry: Norway\nRemarks: two\nlines\n"
            "Typed onto the page\nNote: Is that so?\n\nSecond page"
        )
        assert found.text[found.pages[1] :] == "Second page"

    async def test_broken_form_does_not_take_the_words_of_its_page(self):
        broken = pdfs.field("a", "b", Ff="many")
        data = pdfs.add_annotations(pdfs.make("Words"), broken)
        found = await read("a.pdf", data)
        assert found.text == "Words"
        assert found.left_out == "fields and notes of 1 page"

    async def test_pages_without_text_are_counted(self):
        found = await read("a.pdf", pdfs.make("One", "", "", "Four"))
        assert found.left_out == "2 pages without text"

    async def test_pdf_has_the_start_of_each_page(self):
        read_again = await read("a.pdf", pdfs.make("One", "", "Three"))
        assert read_again.text == "One\n\nThree"
        assert read_again.pages == [0, 5, 5]

    async def test_a_bomb_ends_at_the_limit_of_memory(self, settings):
        settings.PDF_MEMORY_MB = 150
        data = pdfs.make("x" * 150_000_000, compressed=True)
        assert len(data) < 1_000_000
        assert await refusal("a.pdf", data) in ("too_complex", "broken")

    async def test_a_program_that_does_not_end_is_stopped(self, monkeypatch, tmp_path):
        monkeypatch.setattr(processes, "WAITS", 0.01)
        waiting = tmp_path / "waiting.py"
        waiting.write_text("import time\ntime.sleep(600)\n")
        monkeypatch.setattr(pdf, "PROGRAM", waiting)
        # It has used no time of the processor: the machine may have none to give.
        assert await refusal("a.pdf", pdfs.make("Hello")) == "busy"

    async def test_the_program_has_no_secret_of_the_site(self, monkeypatch, tmp_path):
        telling = tmp_path / "telling.py"
        telling.write_text(
            "import json, os, sys\n"
            "print(json.dumps({'text': json.dumps([dict(os.environ), os.getcwd()])}))\n"
        )
        monkeypatch.setattr(pdf, "PROGRAM", telling)
        monkeypatch.setenv("SECRET_KEY", "not for programs")
        said = (await read("a.pdf", pdfs.make("x"))).text
        assert "not for programs" not in said
        assert "SECRET_KEY" not in said


class TestNeighbours:
    async def test_processor_time_is_charged_to_the_user(self, monkeypatch):
        spent = []
        monkeypatch.setattr(
            *(processor_time.Account, "spend"),
            lambda account, seconds: spent.append(account),
        )
        await read("notes.txt", CHINESE.encode("gb18030"), user_id=71)
        account = processor_time.account_of_user(71)
        assert len(spent) == 2  # read, and looked through
        assert set(spent) == {account}

    async def test_user_has_one_slot_and_the_next_has_the_other(
        self, settings, monkeypatch
    ):
        settings.PDFS_AT_ONCE = 2
        running, most, go_on = [], [], asyncio.Event()
        both = asyncio.Event()

        async def run(*arguments, data):
            running.append(data)
            if len(running) == 2:
                both.set()
            most.append((running.count(b"A"), len(running)))
            await go_on.wait()
            running.remove(data)
            return {"text": "done"}

        monkeypatch.setattr(processes, "read_document", run)
        first = [asyncio.create_task(read_pdf(1, b"A")) for _ in range(4)]
        other = asyncio.create_task(read_pdf(2, b"B"))
        await both.wait()
        assert sorted(running) == [b"A", b"B"]
        go_on.set()
        await asyncio.gather(*first, other)
        assert max(own for own, _ in most) == 1
        assert max(every for _, every in most) <= 2

    async def test_more_files_than_can_wait_are_refused(self, monkeypatch):
        go_on = asyncio.Event()

        async def run(*arguments, data):
            await go_on.wait()
            return {"text": "done"}

        monkeypatch.setattr(processes, "read_document", run)
        tasks = [
            asyncio.create_task(read_pdf(1)) for _ in range(processes.MOST_WAITING)
        ]
        await asyncio.sleep(0)
        with pytest.raises(TextError) as caught:
            await read_pdf(1)
        assert caught.value.code == "busy"
        go_on.set()
        await asyncio.gather(*tasks)
        assert await read_pdf(1) == "done"

    async def test_the_files_of_all_people_together_have_a_limit(self, monkeypatch):
        go_on = asyncio.Event()

        async def run(*arguments, data):
            await go_on.wait()
            return {"text": "done"}

        monkeypatch.setattr(processes, "read_document", run)
        monkeypatch.setattr(processes, "MOST_WAITING_OF_ALL", 3)
        tasks = [asyncio.create_task(read_pdf(user)) for user in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(TextError) as caught:
            await read_pdf(7)
        assert caught.value.code == "busy"
        go_on.set()
        await asyncio.gather(*tasks)
        assert await read_pdf(7) == "done"

    async def test_a_file_that_waits_is_not_in_memory(self, settings, monkeypatch):
        settings.PDFS_AT_ONCE = 1
        go_on, files = asyncio.Event(), [BytesIO(b"A"), BytesIO(b"B")]

        async def run(*arguments, data):
            await go_on.wait()
            return {"text": "done"}

        monkeypatch.setattr(processes, "read_document", run)
        tasks = [
            asyncio.create_task(pdf.read_pdf(n, file, reading.hold_nothing))
            for n, file in enumerate(files)
        ]
        await asyncio.sleep(0.01)
        assert [file.tell() for file in files] == [1, 0]
        go_on.set()
        await asyncio.gather(*tasks)
