"""A site whose MCP server is on, and a key that may read."""

import pytest

from chatsite.contrib.endpoint import keys


@pytest.fixture(autouse=True)
def mcp_server(settings):
    settings.MCP_SERVER_ENABLED = True


@pytest.fixture
def reader(alice):
    return keys.create_api_key(alice, "agent", scopes=["read"])[1]
