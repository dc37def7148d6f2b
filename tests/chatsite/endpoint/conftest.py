"""A provider for clients: nothing of the endpoint loads the library of the chat."""

import pytest

from tests.fakes.upstream import Upstream


@pytest.fixture
def upstream(settings):
    with Upstream() as server:
        settings.OPENAI_BASE_URL = server.url
        settings.OPENAI_API_KEY = "sk-test-SECRET"
        settings.CHAT_MODEL = "ok"
        yield server
