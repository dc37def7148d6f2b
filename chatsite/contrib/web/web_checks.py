"""Checks of the settings that switch the web on, and of the search engine itself."""

import asyncio
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from langchain_core.tools import ToolException
from yarl import URL

from .searching import find_results, import_function, is_searxng

QUESTION = "Kyoto"
HINT = (
    "It is the address of a SearXNG without a password, such as http://searxng:8080, "
    "or the dotted path of a function."
)


@register()
def check_search(**kwargs: Any) -> list[CheckMessage]:
    return [
        Error(f"WEB_SEARCH {problem}.", hint=HINT, id="chat.E011")
        for problem in find_problems()
    ]


def find_problems() -> Iterator[str]:
    """Yield what is wrong with WEB_SEARCH.

    The value is not shown: it can contain a password.
    """
    setting = settings.WEB_SEARCH
    if not setting:
        return
    if not is_searxng(setting):
        try:
            import_function(setting)
        except (ImportError, TypeError, ValueError) as error:
            yield f"names no function that can be used ({type(error).__name__})"
        return
    try:
        url = URL(setting)
    except ValueError:
        yield "is no address"
        return
    if not url.host or url.user or url.query_string:
        yield "is no address of a search engine, or has a password"


def try_search() -> str:
    """Ask the search engine once."""
    if not settings.WEB_SEARCH:
        return "off: WEB_SEARCH is not set"
    for problem in find_problems():
        raise ToolException(f"WEB_SEARCH {problem}. {HINT}")
    where = "the function of WEB_SEARCH"
    if is_searxng(settings.WEB_SEARCH):
        where = f"SearXNG at {URL(settings.WEB_SEARCH).host}"
    try:
        found = asyncio.run(find_results(QUESTION, 5))
    except ToolException as error:
        raise ToolException(
            f"{where}: {error} If it answers with 403, add json to search.formats in "
            "its settings.yml."
        ) from None
    return f"{where} finds {len(found)} pages for {QUESTION!r}"
