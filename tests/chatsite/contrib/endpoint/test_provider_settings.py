"""Additions of the file of providers to the requests of clients."""

import json

import pytest
from channels.db import database_sync_to_async

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.relay.provider_answer import list_own_models
from chatsite.llm.provider_file import ModelProvider

from .asgi_client import Call

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def send(alice, settings, upstream):
    """send(**values) -> an answered request; the provider has these values."""
    key = keys.create_api_key(alice, "Codex")[1]

    async def send(**values):
        given = {"name": "Ours", "base_url": upstream.url, "key": "sk-hunter2"}
        given |= {"models": [{"name": "ok"}], **values}
        settings.PROVIDERS = (ModelProvider.model_validate(given),)
        body = {"model": "ok", "messages": [{"role": "user", "content": "hi!"}]}
        raw = json.dumps(body).encode()
        return await Call("/v1/chat/completions", raw, key=key).run()

    return send


async def test_clients_requests_have_the_headers_and_the_version(send, upstream):
    answer = await send(headers={"X-Team": "search"}, api_version="2024-10-21")
    assert answer.status == 200
    (sent,) = upstream.calls
    assert sent.path == "/v1/chat/completions?api-version=2024-10-21"
    assert (sent.headers["x-team"], sent.headers["api-key"]) == ("search", "sk-hunter2")
    assert sent.headers["authorization"] == "Bearer sk-hunter2"


async def test_an_error_with_a_word_of_a_header_is_passed_on(send, upstream):
    upstream.script("400")
    answer = await send(headers={"X-Team": "a"})
    assert answer.status == 400
    assert answer.answer == bytes(upstream.requests[-1].answered)


async def test_an_error_with_the_key_is_not_passed_on(send, upstream):
    upstream.script(lambda x: x.error(400, "no sk-hunter2"))
    answer = await send(headers={"X-Team": "a"})
    assert b"hunter2" not in answer.answer


async def test_models_that_langchain_makes_are_refused_and_not_listed(send, upstream):
    answer = await send(models=[{"name": "ok", "model": "anthropic:claude-opus-4-7"}])
    assert answer.status == 403
    assert not upstream.requests
    assert not await database_sync_to_async(list_own_models)(0)
