"""Links to the timeline and the request inspector, for every list and page."""

from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString


def timeline_url(conversation_id: int, **params: Any) -> str:
    url = reverse("admin:desk-timeline", args=[conversation_id])
    return f"{url}?{urlencode(params)}" if params else url


def timeline_link(conversation_id: int, text: str, **params: Any) -> SafeString:
    url = timeline_url(conversation_id, **params)
    return format_html('<a href="{}">{}</a>', url, text)


def request_link(conversation_id: int, seq: int, text: str) -> SafeString:
    url = reverse("admin:desk-request", args=[conversation_id, seq])
    return format_html('<a href="{}">{}</a>', url, text)
