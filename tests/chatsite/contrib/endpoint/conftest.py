"""A provider for clients: nothing of the endpoint loads the library of the chat."""

import pytest

from chatsite.contrib.endpoint.access.rate_limits import pace
from chatsite.contrib.endpoint.relay import provider_answer
from tests.fakes.upstream import Upstream


@pytest.fixture(autouse=True)
def _forget_requests():
    pace.clear()
    provider_answer._listed.clear()


@pytest.fixture
def upstream(settings):
    with Upstream() as server:
        settings.OPENAI_BASE_URL = server.url
        settings.OPENAI_API_KEY = "sk-test-SECRET"
        settings.CHAT_MODEL = "ok"
        yield server
