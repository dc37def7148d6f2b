"""The request headers that daphne, Django and its apps read, and who may set each.

The table is applied at the entrance (chatsite/asgi.py). A client may set only what
concerns its own request, never the site's address, another client's address or a user.
"""

from enum import Enum, auto
from typing import Any

from django.conf import settings


class Setter(Enum):
    # Every client, about this one request.
    CLIENT = auto()
    # The proxy that BEHIND_PROXY speaks of, which replaces what clients send.
    PROXY = auto()
    # Always removed, unless a setting names it (TRUSTED_USER_HEADER).
    NONE = auto()


def _set_by(setter: Setter, names: str) -> dict[bytes, Setter]:
    return dict.fromkeys(names.encode().split(), setter)


SETTERS = {
    # Host is one of ALLOWED_HOSTS, Origin and Referer prove where a form stood.
    **_set_by(Setter.CLIENT, "host origin referer cookie authorization x-csrftoken"),
    **_set_by(Setter.CLIENT, "accept accept-encoding accept-language user-agent"),
    **_set_by(Setter.CLIENT, "connection content-length content-type expect upgrade"),
    **_set_by(Setter.CLIENT, "if-match if-modified-since if-none-match range"),
    **_set_by(Setter.CLIENT, "if-unmodified-since sec-websocket-extensions"),
    **_set_by(Setter.CLIENT, "sec-websocket-key sec-websocket-protocol"),
    **_set_by(Setter.CLIENT, "sec-websocket-version x-requested-with hx-boosted"),
    **_set_by(Setter.CLIENT, "hx-current-url hx-history-restore-request hx-prompt"),
    **_set_by(Setter.CLIENT, "hx-ptag hx-request hx-request-type hx-source hx-target"),
    **_set_by(Setter.CLIENT, "hx-trigger hx-trigger-name triggering-event"),
    **_set_by(Setter.PROXY, "x-forwarded-for x-forwarded-proto"),
    # The beginning of all addresses, and the address that was meant.
    **_set_by(Setter.NONE, "daphne-root-path x-script-name x-forwarded-prefix"),
    **_set_by(Setter.NONE, "x-original-url x-rewrite-url"),
    # The host, the port, the scheme and the client's address, by other names.
    **_set_by(Setter.NONE, "forwarded x-forwarded-host x-forwarded-port x-real-ip"),
    **_set_by(Setter.NONE, "x-forwarded-scheme x-forwarded-ssl x-forwarded-server"),
    # The method, and the user.
    **_set_by(Setter.NONE, "x-http-method x-http-method-override x-method-override"),
    **_set_by(Setter.NONE, "remote-user x-remote-user x-forwarded-user"),
    **_set_by(Setter.NONE, "x-session-token x-email-verification-key"),
    **_set_by(Setter.NONE, "x-password-reset-key"),
}


def clean_scope(scope: dict[str, Any]) -> dict[str, Any]:
    """Return the request without headers that its client may not set, with one Cookie.

    Of two Cookie headers, Django, Channels and this site would each read another one.
    """
    kept = {settings.TRUSTED_USER_HEADER, settings.GATEWAY_USER_HEADER}
    kept = {name.lower().encode("latin-1") for name in kept}
    believed = (
        {Setter.PROXY, Setter.CLIENT} if settings.BEHIND_PROXY else {Setter.CLIENT}
    )
    headers, cookies = [], []
    for name, value in scope.get("headers", ()):
        if name == b"cookie":
            cookies.append(value)
        elif name in kept or SETTERS.get(name, Setter.CLIENT) in believed:
            headers.append((name, value))
    if cookies:
        headers.append((b"cookie", b"; ".join(cookies)))
    # daphne takes the beginning of all addresses from a header of any client.
    return {**scope, "root_path": "", "headers": headers}
