"""Names of files, as they may be shown and stored."""

import pytest

from memory.engine.file_names import MAX_CHARS, clean_file_name


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\..\\a.txt", "a.txt"),
        ("invoice\u202etxt.exe", "invoicetxt.exe"),
        ("a\0b\r\nSet-Cookie: x.txt", "ab Set-Cookie: x.txt"),
        ("..", "file.txt"),
        ("\u200b\u2066", "file.txt"),
        ("/", "file.txt"),
        ("笔记 2024.md", "笔记 2024.md"),
        ("half \ud800.txt", "half .txt"),
    ],
)
def test_file_name_keeps_the_visible_last_part(name, cleaned):
    assert clean_file_name(name) == cleaned


def test_long_file_name_keeps_its_extension():
    cleaned = clean_file_name("x" * 300 + ".markdown")
    assert len(cleaned) == MAX_CHARS
    assert cleaned.endswith("….markdown")
