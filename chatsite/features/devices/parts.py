"""The list of devices on the account page."""

from django.http import HttpRequest
from django.template.loader import render_to_string

from . import services


def draw_devices_section(request: HttpRequest) -> str:
    devices = services.list_devices(request.user)
    values = {
        "devices": devices,
        "is_cut": len(devices) == services.MOST_LISTED,
        "here": request.session.session_key,
    }
    return render_to_string("devices/_account.html", values, request)
