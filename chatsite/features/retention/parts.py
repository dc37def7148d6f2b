"""What people see of it: on the account page, how long their conversations are kept."""

from django.conf import settings
from django.http import HttpRequest
from django.template.loader import render_to_string


def draw_retention_section(request: HttpRequest) -> str:
    days = settings.RETENTION_DAYS
    values = {"days": days}
    return render_to_string("retention/_account.html", values, request) if days else ""
