"""LLMError: what went wrong at the model, in words that are safe to store and show.

translate_error() is the only place that knows the exceptions of the provider's
libraries. Their texts are never passed on: they can repeat the key that was sent.
"""

from __future__ import annotations

import email.utils
import math
import time
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_noop as _
from langchain_core.exceptions import ContextOverflowError

from memory.engine.exceptions import says_too_long

if TYPE_CHECKING:
    from .dialects import Dialect

DETAILS = {
    "timeout": _("The model took too long to answer. Try again."),
    "rate_limited": _(
        "The model is receiving too many requests. Try again in a moment."
    ),
    "rate_limited_long": _(
        "The model provider accepts no more requests for now. Try again later. If the "
        "problem persists, ask the site administrator."
    ),
    "quota": _(
        "The site's account with the model provider has no credit left. Ask the site "
        "administrator to top it up."
    ),
    "auth": _(
        "The model provider refused this site's key. Ask the site administrator to "
        "check OPENAI_API_KEY, or the key in PROVIDERS_FILE."
    ),
    "model_denied": _(
        "You may not use this conversation's model, or no longer. Choose another "
        "one and try again."
    ),
    "model_off": _(
        "This model is switched off for now. Choose another one and try again. "
        "Nothing is lost."
    ),
    "context_length": _(
        "The conversation is too long for this model. "
        "Summarise it or choose a model with a larger context."
    ),
    "bad_request": _(
        "The model provider refused the request. Ask the site administrator to check "
        "the model's name and settings."
    ),
    "tool_refused": _(
        "The model provider refused one of the tools that the model was offered: its "
        "name or the form of its arguments. Turn it off under Tools… and try again."
    ),
    "calls_refused": _(
        "The model provider refused calls of tools that are earlier in this "
        "conversation. Choose another model, or exclude these messages, and try again."
    ),
    "address": _(
        "The address of the model provider is incomplete. Ask the site administrator "
        "to check OPENAI_BASE_URL, or the address in PROVIDERS_FILE."
    ),
    "unavailable": _("The model can't be reached right now."),
    "bad_response": _(
        "The model sent something that is not a reply. Try again. If the problem "
        "persists, ask the site administrator."
    ),
    "only_reasoning": _(
        "The model ended after its reasoning, without an answer. Try again."
    ),
    "content_filter": _(
        "The model provider's content filter stopped this reply. "
        "Rephrase the message and send it again."
    ),
}
RETRYABLE = {"timeout", "rate_limited", "unavailable", "bad_response"}

FILTER_CODES = {"content_filter", "content_policy_violation"}
STREAM_CODES = {
    "rate_limit_exceeded": "rate_limited",
    "invalid_api_key": "auth",
    "invalid_request_error": "bad_request",
    "insufficient_quota": "quota",
    "429": "rate_limited",
    "402": "quota",
    "rate_limit_error": "rate_limited",
    "authentication_error": "auth",
    "billing_error": "quota",
    "401": "auth",
}


class LLMError(Exception):
    """A request to the model failed.

    `code` is a key of DETAILS, `detail` a sentence for people, `retryable` says that
    the same request may succeed, `retry_after` in how many seconds if that is known,
    `dialect` in which one it was sent, where that is known, and `instead` in which one
    another request may. `about`: the name of the tool that it is about, or "".
    """

    def __init__(
        self,
        code: str,
        *,
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.code = code
        self.detail = DETAILS[code]
        self.retryable = code in RETRYABLE if retryable is None else retryable
        self.retry_after = retry_after
        self.about = ""
        self.dialect: Dialect | None = None
        self.instead: Dialect | None = None
        super().__init__(f"{code}: {self.detail}")


def translate_error(exc: BaseException) -> LLMError:
    """Return the LLMError for any error of a model; it never contains its text."""
    if isinstance(exc, LLMError):
        return exc
    headers = getattr(getattr(exc, "response", None), "headers", None) or {}
    retry_after = parse_retry_after(headers.get("retry-after", ""))
    return LLMError(_find_code(exc), retry_after=retry_after)


def _find_code(exc: BaseException) -> str:
    # Not at the top: it takes a third of a second, which the demo model can save.
    import openai

    if isinstance(exc, ContextOverflowError):
        return "context_length"
    if isinstance(exc, openai.APIStatusError):
        return _code_of_status(exc, exc.status_code)
    if isinstance(exc, (TimeoutError, openai.APITimeoutError)):
        return "unavailable" if _is_lost(exc) else "timeout"
    if isinstance(exc, openai.APIConnectionError):
        return "unavailable"
    if isinstance(exc, openai.APIError):
        return _code_of_stream_error(exc)
    return _code_of_other(exc)


def _code_of_other(exc: BaseException) -> str:
    """Return the code of another library's error, by names: none is imported."""
    told = (getattr(exc, name, None) for name in ("status_code", "code"))
    status = next((value for value in told if isinstance(value, int)), 0)
    if status >= 400:
        return _code_of_status(exc, status)
    kinds = {base.__name__ for base in type(exc).__mro__}
    if kinds & {"APITimeoutError", "ModelTimeoutError"}:
        return "timeout"
    roots = {base.__module__.partition(".")[0] for base in type(exc).__mro__}
    is_lost = kinds & {"APIConnectionError", "ModelConnectionError"}
    if is_lost or isinstance(exc, OSError) or roots & {"httpx", "httpx2", "aiohttp"}:
        return "unavailable"
    # An error event, after a status of 200.
    if status:
        return _code_of_stream_error(exc)
    # JSON, Unicode, a shape that LangChain did not expect, no chunk at all.
    return "bad_response"


def _is_lost(exc: BaseException) -> bool:
    """Return True if a connection failed.

    Openai's transport over aiohttp calls that a time-out, too.
    """
    while exc := exc.__cause__:
        if type(exc).__module__.startswith("aiohttp."):
            return not isinstance(exc, TimeoutError)
    return False


def _code_of_status(exc: Any, status: int) -> str:
    code = getattr(exc, "code", None)
    if status in (401, 403):
        return "auth"
    if status == 402:
        return "quota"
    if status == 429:
        return "quota" if code == "insufficient_quota" else "rate_limited"
    if status in (408, 504):
        return "timeout"
    if status >= 500 or status == 409:
        return "unavailable"
    if status == 413 or _says_context_length(exc):
        return "context_length"
    return "content_filter" if str(code) in FILTER_CODES else "bad_request"


def _code_of_stream_error(exc: Any) -> str:
    """Return the code of an error event in a stream that began with status 200."""
    if _says_context_length(exc):
        return "context_length"
    # Whatever the provider put there: a number, a text, an object.
    code, kind = str(getattr(exc, "code", "")), str(getattr(exc, "type", ""))
    if code in FILTER_CODES:
        return "content_filter"
    return STREAM_CODES.get(code) or STREAM_CODES.get(kind) or "unavailable"


def _says_context_length(exc: Any) -> bool:
    told = (getattr(exc, name, "") for name in ("code", "type", "message"))
    return says_too_long(" ".join(map(str, told)))


def parse_retry_after(value: str) -> float | None:
    """Seconds from a Retry-After header: a number or a date; None if it is neither."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = email.utils.parsedate_to_datetime(value)
            seconds = when.timestamp() - time.time()
        except (ValueError, OverflowError, TypeError, IndexError):
            return None
    # "nan" is a number too, for float().
    return None if math.isnan(seconds) else max(seconds, 0.0)
