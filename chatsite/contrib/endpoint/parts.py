"""The endpoint's part of the account page: the list of keys."""

from django.http import HttpRequest
from django.template.loader import render_to_string

from . import keys
from .addresses import base_address

# Keys of a user that the account page lists.
MAX_KEYS = 200


def draw_keys_section(request: HttpRequest) -> str:
    rows = keys.only_valid(keys.list_api_keys(request.user))[:MAX_KEYS]
    values = {"keys": rows, "base": base_address(request)}
    return render_to_string("endpoint/_account.html", values, request)
