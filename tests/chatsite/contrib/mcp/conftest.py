"""MCP servers as an operator sets them up."""

import pytest

from chatsite.contrib.mcp import mcp_link
from chatsite.contrib.mcp import mcp_servers as mcp
from tests.patience import PATIENCE

from .mcp_servers import write


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A busy machine takes long to start a program."""
    monkeypatch.setattr(mcp, "READY_SECONDS", 60.0 * PATIENCE)
    monkeypatch.setattr(mcp_link, "CONNECT_SECONDS", 60.0 * PATIENCE)


@pytest.fixture
def configure(settings, tmp_path):
    """Servers as an operator sets them up."""

    def configure(**servers):
        settings.MCP_SERVERS = write(tmp_path / "mcp.json", **servers)

    yield configure
    mcp.close()
