"""The check that only the site's own pages open sockets, by scheme, host and port."""

from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host


class SiteOriginValidator:
    """Refuses a handshake whose Origin is none of SITE_ORIGINS.

    Without SITE_ORIGINS the page must come from the address that is being called,
    which has to be one of ALLOWED_HOSTS. A missing Origin is refused. (Channels'
    AllowedHostsOriginValidator compares neither port nor scheme.)
    """

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        accepted = is_site_origin(scope)
        application = self.application if accepted else WebsocketDenier()
        await application(scope, receive, send)


def is_site_origin(scope: dict[str, Any]) -> bool:
    origin, host = _read_header(scope, b"origin"), _read_header(scope, b"host")
    if settings.SITE_ORIGINS:
        return origin in settings.SITE_ORIGINS
    allowed = settings.ALLOWED_HOSTS or ["localhost", "127.0.0.1"]
    if not validate_host(split_domain_port(host)[0], allowed):
        return False
    scheme = "https" if scope.get("scheme") == "wss" else "http"
    return origin == f"{scheme}://{host}"


def _read_header(scope: dict[str, Any], name: bytes) -> str:
    """Return one header; "" when it is missing or was sent twice."""
    values = [value for key, value in scope["headers"] if key == name]
    return values[0].decode("latin-1") if len(values) == 1 else ""
