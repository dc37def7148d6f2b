"""The language of a browser and of a text, and how numbers look in it.

The language of a text is guessed from its letters alone.
"""

import re
from io import BytesIO
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.utils.translation import get_language_from_request, pgettext

# So much of a text tells; the whole of it may be long.
SAMPLE_CHARS = 400
# Whose characters look different from language to language. The first that is found
# counts: Japanese and Korean have Chinese characters, too.
WRITINGS = {
    "ja": re.compile("[\u3041-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7a3]"),
    "zh": re.compile("[\u4e00-\u9fff]"),
}


def of_scope(scope: dict[str, Any]) -> str:
    """Return the language of a socket, by its cookie or header as for a page."""
    request = ASGIRequest({**scope, "method": "GET", "query_string": b""}, BytesIO())
    return get_language_from_request(request)


def of_text(text: str) -> str:
    """Return the language to draw a text in; "" if unknown or of no effect."""
    sample = text[:SAMPLE_CHARS]
    return next((name for name, one in WRITINGS.items() if one.search(sample)), "")


def group_thousands(number: int) -> str:
    mark = pgettext("between thousands", ",")
    return f"{number:,}".replace(",", mark)


def find_sentence_space() -> str:
    """Return the separator of two sentences.

    It is empty in Chinese, whose full stops and colons are as wide as a letter.
    """
    joined = pgettext("two sentences", "%(first)s %(second)s")
    return joined % {"first": "", "second": ""}
