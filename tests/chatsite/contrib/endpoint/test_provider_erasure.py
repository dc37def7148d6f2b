"""Replies that were erased here, and that their provider is asked to delete."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.db.models.functions import Now

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.models import ProviderErasure
from chatsite.contrib.endpoint.provider_erasure import (
    MAX_TRIES,
    erase_due,
    find_due,
)
from chatsite.turns import runner
from memory.library import erase_conversation
from memory.models import Conversation
from tests.fakes.held_threads import HeldState

from .asgi_client import Call

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "Script")[1]


@pytest.fixture
def held(upstream):
    upstream.held = HeldState()
    return upstream.held


async def send(key, text, path="/v1/responses", **more):
    said = {"input": text}
    if path != "/v1/responses":
        said = {"messages": [{"role": "user", "content": text}]}
    body = {"model": "ok", **said, **more}
    call = await Call(path, json.dumps(body).encode(), key=key).run()
    return json.loads(call.answer)["id"]


async def erase_all():
    async for each in Conversation.objects.all():
        await sync_to_async(erase_conversation)(each)


def make_due():
    return sync_to_async(ProviderErasure.objects.update)(due_at=Now())


async def test_erased_conversation_is_deleted_at_the_provider(key, upstream, held):
    first = await send(key, "One?")
    second = await send(key, "Two?", previous_response_id=first)
    await send(key, "Three?", "/v1/chat/completions")
    await erase_due()
    assert held.deleted == []
    await erase_all()
    await runner.sweep_due_work()
    while tasks := [task for task in runner._tasks if not task.done()]:
        await tasks[0]
    assert sorted(held.deleted) == sorted([first, second])
    assert held.held == {}
    sent = [each for each in upstream.requests if each.path.endswith(first)]
    assert sent[0].headers["authorization"] == "Bearer sk-test-SECRET"
    assert not await ProviderErasure.objects.aexists()


async def test_account_that_ends_takes_its_replies_along(key, alice, held):
    named = await send(key, "One?")
    await sync_to_async(alice.delete)()
    await erase_due()
    assert held.deleted == [named]


async def test_refused_deletion_is_tried_again_for_a_while(
    key, upstream, held, monkeypatch
):
    await send(key, "One?")
    await erase_all()
    asked = []
    monkeypatch.setattr(
        held, "delete", lambda x: asked.append(1) or x.error(500, "Not now.")
    )
    for tries in range(1, MAX_TRIES):
        await erase_due()
        assert len(asked) == tries
        # Not again before its time.
        await erase_due()
        assert len(asked) == tries
        assert not await find_due().aexists()
        await make_due()
    await erase_due()
    assert len(asked) == MAX_TRIES
    assert not await ProviderErasure.objects.aexists()


async def test_response_that_the_provider_lacks_counts_as_deleted(key, held):
    await send(key, "One?")
    held.forget_all()
    await erase_all()
    await erase_due()
    assert len(held.deleted) == 1
    assert not await ProviderErasure.objects.aexists()


async def test_provider_that_is_down_is_asked_later(key, held, settings):
    await send(key, "One?")
    await erase_all()
    url, settings.OPENAI_BASE_URL = settings.OPENAI_BASE_URL, "http://127.0.0.1:9/v1"
    await erase_due()
    settings.OPENAI_BASE_URL = url
    await make_due()
    await erase_due()
    assert len(held.deleted) == 1


async def test_threads_and_the_demo_model_have_nothing_to_delete(
    key, held, upstream, settings
):
    settings.ANTHROPIC_BASE_URL = upstream.url.removesuffix("/v1")
    await send(key, "One?", "/v1/messages")
    settings.OPENAI_BASE_URL = settings.OPENAI_API_KEY = ""
    await send(key, "One?")
    await erase_all()
    assert not await ProviderErasure.objects.aexists()
