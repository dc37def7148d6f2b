"""Where clients find the endpoint."""

from django.http import HttpRequest

START = "/v1/"


def base_address(request: HttpRequest) -> str:
    """What a client is given as its base URL."""
    return request.build_absolute_uri(START.rstrip("/"))
