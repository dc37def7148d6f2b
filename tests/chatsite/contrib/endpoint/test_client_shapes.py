"""Fourteen clients, each in one conversation: six turns with two rounds of tools."""

import json

import pytest

from bench.endpoint.clients.shapes import (
    ROUNDS,
    SHAPES,
    TURNS,
    Player,
    ShapeProvider,
    find_faults,
)
from bench.endpoint.identity import HttpTarget
from bench.endpoint.in_memory import MemoryTarget

LOOK = """
import json
from chatsite.contrib.endpoint.models import ClientConversation
rows = ClientConversation.objects.filter(is_single=False).order_by("pk")
print("LOOK" + json.dumps([row.client for row in rows]))
"""


def count_requests(shape):
    return TURNS * (ROUNDS + 1 if shape.has_tools else 1)


def test_table_has_fourteen_clients_of_all_apis():
    assert len({shape.name for shape in SHAPES}) == 14
    assert {shape.wire for shape in SHAPES} == {"chat", "messages", "responses"}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_client_has_one_conversation(shape):
    player = Player(shape, MemoryTarget())
    player.play()
    assert len(player.answers) == count_requests(shape)
    assert len(player.beside) == (TURNS if shape.beside else 0)
    assert find_faults(player) == []


@pytest.mark.server
@pytest.mark.timeout(400)
def test_each_client_has_one_conversation_of_a_server(start_site):
    """Run all clients of one user, with one key."""
    with ShapeProvider() as provider:
        address = {"OPENAI_BASE_URL": provider.url}
        address["ANTHROPIC_BASE_URL"] = provider.url.removesuffix("/v1")
        more = {"MESSAGES_PER_MINUTE": "100000", "CONVERSATIONS_PER_MINUTE": "100000"}
        more |= {"OPENAI_API_KEY": "sk-test", "ANTHROPIC_API_KEY": "sk-test"}
        site = start_site(CHAT_MODEL="m", **address, **more)
        site.manage("create_user", "carol", "correct horse battery")
        key = site.manage("create_key", "carol").strip()
        target = HttpTarget(f"{site.url}/v1", [key])
        faults = []
        for shape in SHAPES:
            player = Player(shape, target)
            player.play()
            faults += find_faults(player)
            assert len(player.answers) == count_requests(shape)
        assert faults == []
        lines = site.manage("shell", "-c", LOOK).splitlines()
    found = next(line for line in lines if line.startswith("LOOK"))
    # Nothing that was asked beside them is an entry of its own.
    assert len(json.loads(found.removeprefix("LOOK"))) == len(SHAPES)
