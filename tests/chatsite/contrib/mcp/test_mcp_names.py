"""MCP tools with names that providers refuse, and malformed ones beside sound ones."""

import re
import sys

import pytest
from asgiref.sync import async_to_sync

from chatsite.features.tools import registry
from memory import transcript
from tests.fakes.mcp_names import LONG, NAMES
from tests.servers import ROOT

from ...scenes import memory_url, signed_in
from .mcp_servers import call, tools_of

PROGRAM = str(ROOT / "tests" / "fakes" / "mcp_names.py")

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def offered(configure):
    configure(odd={"command": sys.executable, "args": [PROGRAM]})
    return async_to_sync(tools_of)("odd")


def test_tools_are_offered_under_names_that_providers_take(offered):
    assert len(offered) == len(NAMES)
    assert "calendar_create_event" in offered
    for tool in offered.values():
        assert re.fullmatch(r"[A-Za-z_][\w-]{0,63}", tool.name, re.A)
    titles = {str(tool.title) for tool in offered.values()}
    assert {"odd: calendar.create_event", "odd: v2/search"} <= titles


def test_call_reaches_the_tool_by_its_own_name(offered):
    async def call_all():
        return {await call(tool, q="x") for tool in offered.values()}

    assert async_to_sync(call_all)() == {f"called {name}" for name in NAMES}


def test_malformed_tool_is_left_out_alone_and_named(offered, alice):
    left = {name: why for _, name, why in registry.left_out()}
    assert set(left) == {"torn", "bare", ""}
    assert "properties.type" in left["torn"]
    assert LONG not in left
    conversation = transcript.create_conversation(alice)
    page = signed_in(alice).get(memory_url("tools", conversation)).content.decode()
    assert "The tool torn of the server odd can&#x27;t be offered" in page or (
        "The tool torn of the server odd can't be offered" in page
    )
