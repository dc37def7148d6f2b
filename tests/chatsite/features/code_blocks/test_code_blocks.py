"""The script on pages that show code."""

import pytest

from chatsite.staticfiles import list_parts

from ...scenes import page_of

pytestmark = pytest.mark.django_db


def test_script_stands_before_that_of_code():
    parts = list_parts("bundles/conversation.js")
    assert parts.index("code_blocks/blocks.js") < parts.index("js/code.js")


def test_page_has_its_words_in_the_users_language(client, conversation):
    client.cookies["django_language"] = "zh-hans"
    assert 'data-all="显示全部 {n} 行"' in page_of(client, conversation)


def test_pages_without_code_do_not_load_it(client, conversation):
    client.force_login(conversation.owner)
    assert "code_blocks/" not in client.get("/").content.decode()


def test_drawing_scripts_are_not_loaded_with_the_page(client, conversation):
    page = page_of(client, conversation)
    assert 'data-drawing="/static/code_blocks/drawing.js"' in page
    assert "mermaid.tiny" not in page
