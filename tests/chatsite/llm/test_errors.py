"""translate() on exceptions as the provider's libraries really make them."""

import json
from email.utils import format_datetime

import aiohttp
import httpx2
import openai
import pytest
from django.utils import timezone

from chatsite.llm.errors import DETAILS, LLMError, parse_retry_after, translate_error

SECRET = "sk-live-SECRET"
REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")


def status_error(status, code=None, message=SECRET, **headers):
    response = httpx2.Response(status, request=REQUEST, headers=headers)
    kind = {400: openai.BadRequestError, 429: openai.RateLimitError}
    error = kind.get(status, openai.APIStatusError)
    return error(message, response=response, body={"code": code})


def stream_error(code=None, kind=None, message=SECRET):
    return openai.APIError(message, REQUEST, body={"code": code, "type": kind})


@pytest.mark.parametrize(
    ("exc", "code", "retryable"),
    [
        (TimeoutError(SECRET), "timeout", True),
        (openai.APITimeoutError(REQUEST), "timeout", True),
        (openai.APIConnectionError(request=REQUEST), "unavailable", True),
        (ConnectionResetError(SECRET), "unavailable", True),
        (httpx2.RemoteProtocolError(SECRET), "unavailable", True),
        (status_error(429), "rate_limited", True),
        (status_error(429, "insufficient_quota"), "quota", False),
        (status_error(401), "auth", False),
        (status_error(403), "auth", False),
        (status_error(404), "bad_request", False),
        (status_error(400), "bad_request", False),
        (status_error(400, "context_length_exceeded"), "context_length", False),
        (status_error(400, message="exceeds the available context size"),
         "context_length", False),
        (status_error(413), "context_length", False),
        (status_error(400, "content_filter"), "content_filter", False),
        (status_error(408), "timeout", True),
        (status_error(500), "unavailable", True),
        (status_error(503), "unavailable", True),
        (status_error(504), "timeout", True),
        (stream_error(), "unavailable", True),
        (stream_error("rate_limit_exceeded"), "rate_limited", True),
        (stream_error(kind="invalid_request_error"), "bad_request", False),
        (stream_error("context_length_exceeded"), "context_length", False),
        (stream_error("content_filter"), "content_filter", False),
        (json.JSONDecodeError(SECRET, "", 0), "bad_response", True),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, SECRET), "bad_response", True),
        (ValueError("No generation chunks were returned"), "bad_response", True),
    ],
)  # fmt: skip
def test_log_names_the_error_without_its_text(exc, code, retryable):
    error = translate_error(exc)
    assert (error.code, error.retryable) == (code, retryable)
    assert error.detail == DETAILS[code]
    assert SECRET not in f"{error} {error!r} {error.args} {vars(error)}"


def test_errors_of_the_site_stay_unchanged():
    error = LLMError("quota")
    assert translate_error(error) is error


def test_errors_are_full_sentences():
    for detail in DETAILS.values():
        assert detail[0].isupper()
        assert detail.endswith(".")


def test_error_says_when_to_retry():
    assert translate_error(status_error(429, **{"retry-after": "7"})).retry_after == 7
    assert translate_error(status_error(429)).retry_after is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("soon", None), ("", None)],
)
def test_retry_after_takes_seconds(value, expected):
    assert parse_retry_after(value) == expected


def test_retry_after_takes_a_date():
    when = timezone.now() + timezone.timedelta(seconds=30)
    assert 25 < parse_retry_after(format_datetime(when, usegmt=True)) <= 30


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (aiohttp.ServerDisconnectedError(SECRET), "unavailable"),
        (aiohttp.ClientOSError(SECRET), "unavailable"),
        (aiohttp.ConnectionTimeoutError(SECRET), "timeout"),
        (aiohttp.SocketTimeoutError(SECRET), "timeout"),
    ],
)
def test_lost_and_late_connections_are_distinguished(cause, code):
    error = openai.APITimeoutError(REQUEST)
    error.__cause__ = httpx2.ConnectTimeout(SECRET)
    error.__cause__.__cause__ = cause
    assert translate_error(error).code == code
