"""Model and temperature of a conversation, and who is named on its replies."""

import re

import pytest
from django.db.models import QuerySet

from chatsite.llm import providers
from chatsite.turns import commands, lifecycle
from memory import context
from memory.models import ModelCall

from ..scenes import page_of, submit, violations


def reply_by(conversation, model, text):
    """Answer what waits with this model."""
    claim = lifecycle.claim(conversation.pk)
    built = context.build(conversation, model=model)
    claim = lifecycle.begin(claim, built, model)
    lifecycle.finish(claim, lifecycle.Result("done", text))


class TestNames:
    @pytest.mark.parametrize(
        ("base_url", "name", "shown"),
        [
            ("", "", "OpenAI"),
            ("https://api.openai.com/v1", "", "OpenAI"),
            ("http://vllm.internal:8000/v1", "", "vllm.internal"),
            ("http://vllm.internal:8000/v1", "The library", "The library"),
        ],
    )
    def test_a_provider_has_one(self, settings, base_url, name, shown):
        settings.OPENAI_BASE_URL, settings.PROVIDER_NAME = base_url, name
        assert providers.provider("some-model") == shown
        assert providers.provider("demo") == ""

    def test_each_version_of_a_reply_names_its_own_model(
        self, client, conversation, settings
    ):
        settings.PROVIDER_NAME = "The library"
        submit(conversation, "Who are you?")
        reply_by(conversation, "first-model", "One.")
        settings.PROVIDER_NAME = "Elsewhere"
        commands.regenerate(conversation, conversation.turns.last().pk)
        reply_by(conversation, "second-model", "Two.")
        page = " ".join(page_of(client, conversation).split())
        names = re.findall(
            r'who">(\w+-model)</span>.*?"provider">([\w ]+)</span>', page
        )
        assert names == [
            ("first-model", "The library"),
            ("second-model", "Elsewhere"),
        ]
        assert violations() == []

    def test_the_provider_is_signed(self, conversation):
        submit(conversation, "Who are you?")
        reply_by(conversation, "some-model", "Me.")
        assert violations() == []
        rows = QuerySet(ModelCall).filter(provider="OpenAI")
        assert rows.update(provider="Another") == 1
        assert any("signature" in found for found in violations())
