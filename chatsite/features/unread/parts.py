"""The page parts of news: lines that the pages' scripts show where they belong."""

from typing import Any

from django.template.loader import render_to_string

from chatsite.features.tools.tool_loop.reminders import KIND, News

from .services import describe_news, find_news, name_news


def draw_unread(user_id: int, is_fragment: bool = False) -> str:
    """Return all unread news of the user, for a page."""
    values = {"unread": [*map(_show, find_news(user_id))], "is_fragment": is_fragment}
    return render_to_string("unread/_unread.html", values)


def draw_now(conversation: str, news: News | None) -> str:
    """Return the news of one conversation, for a page that has the rest."""
    values = {"conversation": conversation, "line": news and _show(news)}
    return render_to_string("unread/_now.html", values)


def _show(news: News) -> dict[str, Any]:
    return {
        "news": news,
        "line": describe_news(news),
        "said": name_news(news.kind),
        "is_of_turn": news.kind != KIND,
        "asks": news.kind in ("question", KIND),
    }
