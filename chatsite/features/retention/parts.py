"""The page part of retention: how long conversations are kept, on the account page."""

from django.conf import settings
from django.http import HttpRequest
from django.template.loader import render_to_string


def draw_retention_section(request: HttpRequest) -> str:
    days = settings.RETENTION_DAYS
    values = {"days": days}
    return render_to_string("retention/_account.html", values, request) if days else ""
