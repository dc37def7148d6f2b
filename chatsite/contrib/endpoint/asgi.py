"""Routing and authentication of the endpoint and the MCP server.

Without a valid key, only the API descriptions are loaded.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from chatsite import plugins
from chatsite.database import log_trouble
from chatsite.fair_queue import working_for
from chatsite.ops.load import TOO_BUSY, TOO_LARGE
from memory.database import TROUBLE, is_away

from . import keys
from .addresses import MAX_BODY_BYTES, MAX_MCP_BYTES, MCP, MODELS, START
from .apis import ANTHROPIC_MESSAGES, APIS
from .apis.api import Api
from .apis.errors import ApiError, refuse_body, refuse_key
from .models import ApiKey

Scope = dict[str, Any]
Headers = list[tuple[bytes, bytes]]
MAX_KEY_CHARS = 200
# Conversations that keys with the scope `read` can fetch.
CONVERSATIONS = "/v1/conversations/"


async def answer_api(scope: Scope, receive: Any, send: Any) -> None:
    headers = read_headers(scope["headers"])
    api = find_api(scope["path"], headers)
    try:
        check_address(api, scope, headers)
        key = await find_caller(scope, headers)
        if TOO_LARGE in scope:
            is_mcp = scope["path"].startswith(MCP)
            raise refuse_body(MAX_MCP_BYTES if is_mcp else MAX_BODY_BYTES)
        if TOO_BUSY in scope:
            detail = "Too many of your requests are large. Wait for one to end."
            raise ApiError(429, "too_many_requests", detail, retry_after=1)
        with working_for(key.owner_id):
            await answer_caller(api, key, scope, headers, receive, send)
    except ApiError as error:
        await send_error(send, api, error)
    except TROUBLE as error:
        log_trouble(error)
        detail = "The site can't reach its database. Try again in a moment."
        unavailable = ApiError(503, "unavailable", detail, retry_after=5)
        await send_error(send, api, unavailable)


async def answer_caller(
    api: Api,
    key: ApiKey,
    scope: Scope,
    headers: Mapping[str, str],
    receive: Any,
    send: Any,
) -> None:
    if scope["path"].startswith(CONVERSATIONS):
        from .access import read_scope

        await read_scope.answer_reading(key, scope, send)
        return
    if scope["path"] == MCP:
        from .mcp_server import access_check

        await access_check.answer_mcp(key, scope, headers, receive, send)
        return
    from . import request_handling

    await request_handling.answer_request(api, key, scope, headers, receive, send)


def find_api(path: str, headers: Mapping[str, str]) -> Api:
    """Return the API of this path; for an unknown path, the most common one."""
    is_models = path == MODELS or path.startswith(f"{MODELS}/")
    is_listed = is_models and "anthropic-version" in headers
    if is_listed or path.startswith(f"{ANTHROPIC_MESSAGES.upstream_path}/"):
        return ANTHROPIC_MESSAGES
    return next((api for api in APIS if api.find_method(path)), APIS[0])


def read_headers(pairs: Headers) -> Mapping[str, str]:
    """Return headers by lower-case name.

    The values of a repeated header are joined, so that none of them matches.
    """
    found: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def check_address(api: Api, scope: Scope, headers: Mapping[str, str]) -> None:
    """Raise ApiError for a host, path or method that is not answered."""
    host, _ = split_domain_port(headers.get("host", ""))
    allowed = settings.ALLOWED_HOSTS
    if settings.DEBUG and not allowed:
        allowed = [".localhost", "127.0.0.1", "[::1]"]
    if not host or not validate_host(host, allowed):
        raise ApiError(400, "bad_host", "This site does not answer to that host name.")
    method = find_method(api, scope["path"])
    if method is None:
        raise ApiError(404, "not_found", f"There is no {scope['path'][:100]} here.")
    if scope["method"] != method:
        detail = f"Use {method} for {scope['path']}."
        raise ApiError(405, "method_not_allowed", detail)


def find_method(api: Api, path: str) -> str | None:
    if path.startswith(CONVERSATIONS):
        return "GET"
    if path == MCP:
        # A GET would be an endless stream, which this site does not offer.
        return "POST" if settings.MCP_SERVER_ENABLED else None
    return api.find_method(path)


async def find_caller(scope: Scope, headers: Mapping[str, str]) -> ApiKey:
    """Return the key of the request.

    Raise the same ApiError for every key that is refused.
    """
    key = read_key(headers)
    # Requests without a valid key wait in turn with those of each user.
    address = (scope.get("client") or ("",))[0]
    with working_for(("stranger", address)):
        found = await database_sync_to_async(_find_key)(key, headers)
    if found is None:
        raise refuse_key()
    return found


def read_key(headers: Mapping[str, str]) -> str:
    """Return the key that a request names.

    Raise ApiError for what can't be a key.
    """
    key = headers.get("x-api-key", "")
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        key = token.strip()
    if not key.startswith(keys.PREFIX) or len(key) > MAX_KEY_CHARS:
        raise refuse_key()
    return key


def find_key_owner(pairs: Headers) -> int | None:
    """Return the owner's id; the database is read only if a key is named."""
    try:
        found = keys.find_api_key(read_key(read_headers(pairs)))
    except ApiError:
        return None
    return found.owner_id if found else None


def _find_key(key: str, headers: Mapping[str, str]) -> ApiKey | None:
    is_open = settings.ENDPOINT_WITHOUT_STORE == "open"
    try:
        found = keys.find_api_key(key)
    except TROUBLE as error:
        if not is_open or not is_away(error):
            raise
        from .access import outage

        return outage.recall_key(key)
    if found and found.kind == ApiKey.KeyKind.GATEWAY:
        from .access.gateway import apply_gateway_user

        apply_gateway_user(found, headers)
    elif is_open:
        from .access import outage

        outage.remember_key(key, found)
    return found


async def send_error(send: Any, api: Api, error: ApiError) -> None:
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    if error.retry_after is not None:
        headers.append((b"retry-after", str(max(1, round(error.retry_after))).encode()))
    headers += [(name.encode(), text.encode()) for name, text in error.headers.items()]
    body = api.write_error(error)
    headers.append((b"content-length", str(len(body)).encode()))
    start = {"type": "http.response.start", "status": error.status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})


TURNS = "chatsite.turns.limits.admit_turn"
PACE = "chatsite.contrib.endpoint.access.rate_limits.limit_request_rate"
READING = "chatsite.contrib.endpoint.access.read_scope.record_reading"


def mount_all() -> None:
    mount = partial(
        plugins.mount,
        slot="KEY",
        answer=answer_api,
        pace=PACE,
        access_log="none: nothing that people wrote is shown",
        max_bytes=lambda: MAX_BODY_BYTES,
        find_sender=find_key_owner,
    )
    answers = "none: clients read the answer to what they have sent"
    mount(START, pace=TURNS, tokens=TURNS, access_log=answers)
    # OpenAI's Responses API, where a path below this is a stored reply.
    mount("/v1/responses/", tokens=TURNS, access_log=READING)
    mount(MODELS, "/v1/messages/count_tokens")
    mount(CONVERSATIONS, access_log=READING)
    mount(MCP, max_bytes=lambda: MAX_MCP_BYTES, access_log=READING)
