"""Handling one request of a client, from its first byte to its answer's last.

A request has no thread of its own: only database work runs in one, in turn.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.conf import settings
from django.urls import reverse

from chatsite import plugins
from chatsite.fair_queue import for_drawing, make_fair_thread
from chatsite.llm import providers
from chatsite.ops.processor_time import account_of_user
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import model_access
from chatsite.turns.models import Turn
from memory.database import TROUBLE, is_away

from . import keys
from .access.rate_limits import check_processor_share, limit_request_rate
from .addresses import MODELS
from .apis import ANTHROPIC_MESSAGES, OPENAI_COMPACT
from .apis.api import Api
from .apis.errors import STATUSES, ApiError, refuse_model, refuse_switched_off
from .models import ApiKey
from .relay.client_connection import Connection, GoneError, unpack_body
from .relay.provider_answer import fetch_count, list_own_models, list_upstream_models
from .relay.reply_relay import ReplyRelay, SendLess
from .store.held_state import refuse_held
from .store.owner_history import OwnerHistory, find_previous
from .store.parsed_request import OutgoingRequest, ParsedRequest, read_client_request
from .store.request_store import (
    HeldElsewhereError,
    RequestWriter,
    StoredRequest,
    read_lease,
    store_request,
)

T = TypeVar("T")
# Requests of all users in this process, and of one user. They include token counts,
# which take no slot of replies.
MAX_RUNNING, MAX_USER_RUNNING = 200, 64
# How often a turn of another process is looked at.
POLL_SECONDS = 0.2
_running: Counter[int] = Counter()
# Copies long conversations, one user after the other, while the database thread does
# other work.
_copier = make_fair_thread()


async def answer_request(
    api: Api,
    key: ApiKey,
    scope: dict[str, Any],
    headers: Mapping[str, str],
    receive: Any,
    send: Any,
) -> None:
    """Answer a request.

    Raise ApiError as long as nothing was answered.
    """
    check_processor_share(key)
    is_list = scope["path"] == MODELS or scope["path"].startswith(f"{MODELS}/")
    if keys.SEND not in key.scopes and not is_list:
        raise ApiError(403, "not_allowed", "This key may not send. Use another one.")
    if scope["method"] == "GET" or scope["path"] == api.count_path:
        limit_request_rate(key.owner_id, "ENDPOINT_REQUESTS_PER_MINUTE")
    with hold_slot(key.owner_id), closing(Connection(scope, receive, send)) as client:
        if is_list:
            named = scope["path"].removeprefix(MODELS).removeprefix("/")
            await send_models(api, key, send, named)
            return
        with suppress(GoneError):
            await RequestHandler(api, key, scope, headers, client).handle_request()


@contextmanager
def hold_slot(owner_id: int) -> Iterator[None]:
    """Hold a request slot of the user.

    Raise ApiError where there is none.
    """
    if _running[owner_id] >= MAX_USER_RUNNING:
        detail = "Too many of your requests run at once. Wait for one to end."
        raise ApiError(429, "too_many_requests", detail, retry_after=1)
    if _running.total() >= MAX_RUNNING:
        detail = "This site answers as many requests as it can. Try again in a moment."
        raise ApiError(503, "too_busy", detail, retry_after=2)
    _running[owner_id] += 1
    try:
        yield
    finally:
        _running[owner_id] -= 1
        if not _running[owner_id]:
            del _running[owner_id]


async def send_models(api: Api, key: ApiKey, send: Any, named: str) -> None:
    """Send the models that the key may use, or the named one.

    Raise ApiError where it is not among them.
    """
    if settings.PROVIDERS and api is not ANTHROPIC_MESSAGES:
        models = await database_sync_to_async(list_own_models)(key.owner_id)
    else:
        models = await list_upstream_models(api)
    off = partial(plugins.is_switched_off, model_access.KIND)
    models = [each for each in models if not off(each["id"])]
    if key.models_allowed:
        models = [each for each in models if each["id"] in key.models_allowed]
    found = api.list_models([each for each in models if named in ("", each["id"])])
    if named and not found["data"]:
        detail = f"There is no model {named[:100]!r} here. GET {MODELS} lists them."
        raise ApiError(404, "model_not_found", detail)
    answer = found["data"][0] if named else found
    body = json.dumps(answer, ensure_ascii=False).encode()
    pairs = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True, slots=True)
class RequestHandler:
    """The handling of one request, with its key and its client's connection."""

    api: Api
    key: ApiKey
    scope: Mapping[str, Any]
    headers: Mapping[str, str]
    client: Connection

    async def handle_request(self) -> None:
        api = self.api
        raw = await self.client.read_body(self.headers)
        if packed := self.headers.get("content-encoding", "").strip().lower():
            raw = await for_drawing(unpack_body)(raw, packed)
        mode = find_mode(self.key, api, self.headers)
        if self.scope["path"] == api.count_path:
            await self.relay_count(raw, mode)
            return
        if self.scope["method"] == "GET":
            await self.relay_stored_response()
            return
        name, within = find_continued(self.headers), None
        if name:
            from .store.stored_history import add_history

            within, raw = await self.run_step(add_history, self.key, api, name, raw)
        request = await self.read_request(raw, within)
        is_known = request.is_compaction and api.find_upstream(request.model)
        if api is OPENAI_COMPACT or is_known:
            await self.relay_compaction(await self.read_references(request))
            return
        try:
            request = await self.read_references(request)
            stored, send_less = await self.prepare_request(request, mode)
        except TROUBLE as error:
            if settings.ENDPOINT_WITHOUT_STORE != "open" or not is_away(error):
                raise
            from .access import outage

            _translate_limits(outage.admit_forwarding, self.key, request)
            await outage.forward(self.key, request, self.headers, self.client)
            return
        await publish_request(stored)
        describe = partial(make_answer_headers, self.scope, self.headers)
        relay = ReplyRelay(self.key.pk, stored, self.client, send_less)
        await relay.run(self.headers, describe)

    async def relay_count(self, raw: bytes, mode: str) -> None:
        """Answer how many tokens a body, or what would be sent of it, has.

        Such a question is no part of any conversation.
        """
        own = {}
        request = await self.read_request(raw)
        if request.previous:
            await self.run_step(find_previous, OwnerHistory(self.key.owner_id), request)
        if mode == ApiKey.Mode.BOUND:
            from .bounding.bounds import select_unstored

            refuse_held(request)
            sent = await self.run_step(select_unstored, self.key, request)
            raw = sent.request.raw
            own = make_context_headers(sent)
        fetched = fetch_count(self.api, request.model, self.headers, raw)
        await self.client.pass_on(await self.client.run_unless_gone(fetched), own)

    async def relay_stored_response(self) -> None:
        """Send a response that this user was sent before, and only this user."""
        from .relay.stored_responses import fetch_stored_response, find_response_call

        name = self.scope["path"].removeprefix(self.api.id_path)
        kept = await self.run_step(find_response_call, self.key, self.scope, name)
        query = self.scope["query_string"].decode("latin-1")
        fetched = fetch_stored_response(self.api, kept, name, query, self.headers)
        await self.client.pass_on(await self.client.run_unless_gone(fetched), {})

    async def relay_compaction(self, request: ParsedRequest) -> None:
        """Send the history compacted by the provider, and store its hashes."""
        from . import provider_compaction

        await self.run_step(provider_compaction.admit_compaction, self.key, request)
        fetched = provider_compaction.fetch_compacted(request, self.headers)
        answer, said = await self.client.run_unless_gone(fetched)
        if not answer.is_error:
            store_compaction = provider_compaction.store_compaction
            await self.run_step(store_compaction, self.key, request, said)
        await self.client.pass_on(answer, {"x-windowpane-mode": "observe"})

    async def read_request(
        self, raw: bytes, within: int | None = None
    ) -> ParsedRequest:
        """Parse and check a body.

        Raise ApiError, also for a model that the key or its owner may not use.
        """
        given = (self.api, self.headers, raw, within, self.key.owner_id)
        request = await for_drawing(self._run_timed)(read_client_request, *given)
        keys.check_model(self.key, request.model)
        await check_listed(self.key, request)
        return request

    async def read_references(self, request: ParsedRequest) -> ParsedRequest:
        """Return the request with the contents of items that it names by id.

        Raise ApiError for items that this user does not have.
        """
        if not request.references:
            return request
        from .store.served_items import fill_references, find_items

        found = await self.run_step(find_items, self.key.owner_id, request)
        fill = for_drawing(self._run_timed)
        return await fill(fill_references, request, found) if found else request

    async def prepare_request(
        self, request: ParsedRequest, mode: str
    ) -> tuple[StoredRequest, SendLess | None]:
        """Store the request; return it with the step that shortens it, if any.

        A turn that a killed process left is continued, as soon as its lease has ended.
        Raise ApiError, also for a limit of the site.
        """
        try:
            return await self._store_in_mode(request, mode)
        except HeldElsewhereError as held:
            waiting = self._wait_for_holder(*held.args)
        await self.client.run_unless_gone(waiting)
        return await self._store_in_mode(replace(request, waits=False), mode)

    async def _wait_for_holder(self, conversation_id: int) -> None:
        """Wait until the turn has ended, or its lease is renewed: its process lives."""
        patience = settings.TURN_LEASE_SECONDS + 2 * settings.TURN_SWEEP_SECONDS
        first, began = await self.run_step(read_lease, conversation_id), monotonic()
        while first and monotonic() < began + patience:
            await asyncio.sleep(POLL_SECONDS)
            if await self.run_step(read_lease, conversation_id) != first:
                return

    async def _store_in_mode(
        self, request: ParsedRequest, mode: str
    ) -> tuple[StoredRequest, SendLess | None]:
        if mode == ApiKey.Mode.BOUND:
            from .bounding.bounds import store_bounded

            refuse_held(request)
            return await store_bounded(self.key, request, self.run_step)
        writer = RequestWriter(self.key, request)
        return await store_request(writer, self.run_step), None

    async def run_step(
        self, step: Callable[..., T], *given: Any, is_copy: bool = False
    ) -> T:
        """Run a step in the database thread; a copy in a thread of its own."""
        apart = {"thread_sensitive": False, "executor": _copier} if is_copy else {}
        run = database_sync_to_async(_translate_limits, **apart)
        return await run(self._run_timed, step, *given)

    def _run_timed(self, step: Callable[..., T], *given: Any) -> T:
        with account_of_user(self.key.owner_id).timed():
            return step(*given)


def find_mode(key: ApiKey, api: Api, headers: Mapping[str, str]) -> str:
    """Return the mode of a request: that of its header, or else of its key.

    It is *observe* where nothing could be summarised. Raise ApiError.
    """
    mode = headers.get("x-windowpane-mode", key.mode).strip().lower()
    if mode not in ApiKey.Mode.values:
        names = ", ".join(ApiKey.Mode.values)
        raise ApiError(400, "bad_mode", f"x-windowpane-mode can be one of: {names}.")
    if mode == ApiKey.Mode.OBSERVE:
        return mode
    from .bounding.token_limits import can_summarise

    return mode if can_summarise(api) else ApiKey.Mode.OBSERVE


async def check_listed(key: ApiKey, request: ParsedRequest) -> None:
    """Raise ApiError for a model that is off, or not allowed for the owner.

    It has to be in PROVIDERS_FILE, if there is one. Anthropic's API has a provider of
    its own.
    """
    if plugins.is_switched_off(model_access.KIND, request.model):
        raise refuse_switched_off(request.model)
    if not settings.PROVIDERS or request.api.name == ANTHROPIC_MESSAGES.name:
        return
    may_use = database_sync_to_async(model_access.may_use)
    is_demo = providers.is_demo(request.model)
    if is_demo or not await may_use(key.owner_id, request.model):
        raise refuse_model(request.model)


def find_continued(headers: Mapping[str, str]) -> str:
    """Return the id of the conversation whose newest message a client sends.

    Return "" if the client sends all messages. Raise ApiError.
    """
    send = headers.get("x-windowpane-send", "all").strip().lower()
    name = headers.get("x-windowpane-conversation", "").strip()
    if send == "newest" and name:
        return name
    if send != "all":
        detail = (
            "x-windowpane-send can be: all; or newest, with the id of a conversation "
            "in x-windowpane-conversation."
        )
        raise ApiError(400, "bad_send", detail)
    return ""


def _translate_limits(step: Callable[..., T], *given: Any) -> T:
    """Run a step and raise a limit of the site as ApiError."""
    try:
        return step(*given)
    except CommandError as error:
        status = STATUSES.get(error.code, 400)
        wait = error.retry_after
        raise ApiError(status, error.code, error.detail, retry_after=wait) from None


async def publish_request(stored: StoredRequest) -> None:
    pk, turn = stored.conversation.pk, stored.claim.row_id
    if stored.is_changed:
        await events.publish_change(pk)
    if stored.beside:
        await events.publish_change(stored.beside)
    await events.publish_event(pk, events.State(turn, Turn.State.RUNNING))
    if stored.title:
        await events.publish_event(pk, events.Title(stored.title))


def make_answer_headers(
    scope: Mapping[str, Any], headers: Mapping[str, str], stored: StoredRequest
) -> dict[str, str]:
    """Return the site's own headers of an answer.

    They never have a word of the conversation.
    """
    uuid = stored.conversation.uuid
    page = reverse("conversation-detail", args=[uuid])
    at = f"?at={stored.reply_seq}#message-{stored.reply_seq}"
    view = f"{site_address(scope, headers)}{page}{at}"
    return {
        "cache-control": "no-store",
        "x-windowpane-conversation": str(uuid),
        "x-windowpane-view": view,
        "x-windowpane-request-sha256": stored.sent.request.body.sha256,
        "x-windowpane-lineage": stored.lineage,
        **make_context_headers(stored.sent, stored.tries),
        **(stored.held.make_headers() if stored.held else {}),
    }


def site_address(scope: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """Return the base of page addresses, as the client has called the site."""
    scheme = scope.get("scheme", "http")
    if settings.BEHIND_PROXY:
        forwarded = headers.get("x-forwarded-proto", scheme)
        scheme = forwarded if forwarded in ("http", "https") else scheme
    return f"{scheme}://{headers['host']}"


def make_context_headers(sent: OutgoingRequest, tries: int = 1) -> dict[str, str]:
    """Return whether the request is unchanged, and its message counts."""
    kind = "exact" if sent.positions is None else "bounded"
    again = f"; tries={tries}" if tries > 1 else ""
    counts = f"before={sent.before}; after={sent.after}"
    mode = ApiKey.Mode.BOUND if sent.is_bound else ApiKey.Mode.OBSERVE
    return {
        "x-windowpane-context": f"{kind}; {counts}{again}",
        "x-windowpane-mode": mode.value,
    }
