"""The script on pages that show code."""

import pytest

from chatsite.code_blocks.parts import draw_script

from ..scenes import page_of

pytestmark = pytest.mark.django_db


def test_it_stands_before_what_makes_pieces_of_code(client, conversation):
    page = page_of(client, conversation)
    assert page.index("code_blocks/blocks.js") < page.index("js/code.js")


def test_it_speaks_the_language_of_the_page(client, conversation):
    client.cookies["django_language"] = "zh-hans"
    assert 'data-all="显示全部 {n} 行"' in page_of(client, conversation)


def test_it_is_nowhere_else_in_the_message_box():
    assert draw_script("inside") == ""
