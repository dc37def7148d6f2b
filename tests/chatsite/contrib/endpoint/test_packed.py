"""Packed bodies, and lists and errors in the form of each API."""

import gzip
import json

import pytest
import zstandard

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.addresses import MAX_BODY_BYTES
from tests.fakes.upstream import Upstream

from .asgi_client import ask

pytestmark = pytest.mark.django_db(transaction=True)
CHAT = "/v1/chat/completions"
BODY = {"model": "ok", "messages": [{"role": "user", "content": "Hello"}]}
PLAIN = json.dumps(BODY).encode()


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "llm")[1]


async def test_a_gzip_body_is_unpacked(key, upstream):
    status, _, _ = await ask(
        CHAT, gzip.compress(PLAIN), key=key, content_encoding="gzip"
    )
    assert status == 200
    assert upstream.requests[-1].raw == PLAIN


@pytest.mark.parametrize("encoding", ["deflate", "br", "gzip, gzip", "zstd, gzip"])
async def test_unknown_encoding_is_refused_by_name(key, upstream, encoding):
    status, _, body = await ask(CHAT, PLAIN, key=key, content_encoding=encoding)
    assert status == 415
    assert encoding in body["error"]["message"]
    assert not upstream.requests


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (gzip.compress(bytes(2 * MAX_BODY_BYTES)), 413),
        (gzip.compress(PLAIN)[:-4], 400),
        (gzip.compress(PLAIN) + b"more", 400),
        (PLAIN, 400),
    ],
    # Not by the bytes, which have the second in them.
    ids=["large", "cut", "more", "plain"],
)
async def test_gzip_is_bounded_and_whole(key, upstream, raw, status):
    found, _, body = await ask(CHAT, raw, key=key, content_encoding="gzip")
    assert (found, bool(body["error"]["message"])) == (status, True)
    assert not upstream.requests


async def test_a_zstd_body_is_unpacked(key, upstream):
    status, _, _ = await ask(
        CHAT, zstandard.compress(PLAIN), key=key, content_encoding="zstd"
    )
    assert status == 200
    assert upstream.requests[-1].raw == PLAIN


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (zstandard.compress(bytes(20 * MAX_BODY_BYTES)), 413),
        (zstandard.compress(PLAIN)[:-4], 400),
        (zstandard.compress(PLAIN) + b"more", 400),
        (zstandard.compress(PLAIN) * 2, 400),
        (PLAIN, 400),
    ],
)
async def test_zstd_is_bounded_and_whole(key, upstream, raw, status):
    found, _, body = await ask(CHAT, raw, key=key, content_encoding="zstd")
    assert (found, bool(body["error"]["message"])) == (status, True)
    assert not upstream.requests


async def test_model_is_found_by_its_name(key, upstream):
    found = {}
    for name in ("ok", "missing", "a/b"):
        found[name] = await ask(f"/v1/models/{name}", key=key)
    assert (found["ok"][0], found["ok"][2]["id"]) == (200, "ok")
    assert found["ok"][2]["object"] == "model"
    assert (found["missing"][0], found["a/b"][0]) == (404, 404)
    assert "missing" in found["missing"][2]["error"]["message"]
    status, _, body = await ask("/v1/models/x", key=key, anthropic_version="2023-06-01")
    assert (status, body["type"]) == (404, "error")


@pytest.mark.parametrize("version", [{}, {"anthropic_version": "2023-06-01"}])
async def test_path_with_a_slash_and_no_name_is_not_found(key, upstream, version):
    """OpenAI lists its models without the slash only."""
    for path in ("/v1/models/", "/v1/responses/", "/v1/chat/completions/"):
        status, _, body = await ask(path, key=key, **version)
        assert (status, f"There is no {path} here.") == (404, body["error"]["message"])
    assert not upstream.requests


async def test_anthropic_model_has_the_form_of_its_api(key, settings):
    with Upstream() as server:
        settings.ANTHROPIC_API_KEY = "sk-ant"
        settings.ANTHROPIC_BASE_URL = server.url.removesuffix("/v1")
        sent = {"key": key, "anthropic_version": "2023-06-01"}
        status, _, body = await ask("/v1/models/ok", **sent)
    assert (status, body["type"], body["id"]) == (200, "model", "ok")


@pytest.mark.parametrize("path", ["/v1/messages/nothing", "/v1/messages/batches/one"])
async def test_paths_below_messages_are_refused_as_anthropic_does(key, path):
    status, _, body = await ask(path, key=key)
    assert (status, body["type"]) == (404, "error")


async def test_models_of_anthropics_provider_are_listed(key, settings):
    with Upstream() as server:
        settings.ANTHROPIC_API_KEY = "sk-ant"
        settings.ANTHROPIC_BASE_URL = server.url.removesuffix("/v1")
        status, _, body = await ask(
            "/v1/models", key=key, anthropic_version="2023-06-01"
        )
    assert (status, body["has_more"]) == (200, False)
    assert body["first_id"] in [each["id"] for each in body["data"]]
    assert "ok" in [each["id"] for each in body["data"]]
