"""Evidence of a conversation, downloaded by its owner and checked."""

import json
from functools import cache

import pytest

from chatsite.contrib.evidence import verify, views

from ...scenes import signed_in


class Evidence:
    """A downloaded file, and what verify.py says of it."""

    def __init__(self, client, conversation, query=""):
        address = f"/c/{conversation.uuid}/evidence.json{query}"
        self.answer = client.get(address)
        self.data = self.answer.content
        self.keys = client.get("/.well-known/windowpane-keys.json").content

    @property
    def file(self):
        return json.loads(self.data)

    @property
    def own(self):
        return self.file["windowpane"]

    @property
    def places(self):
        rows = (each["windowpane"] for each in self.file["dialog"])
        return {row["seq"]: row["place"] for row in rows}

    def check(self, data=None, keys=None):
        return verify.verify(data or self.data, keys or self.keys)


@pytest.fixture(autouse=True)
def full_pace():
    views.pace.clear()


@pytest.fixture
def download():
    """download(conversation, query="") -> Evidence, by its owner."""
    sign_in_once = cache(signed_in)

    def get(conversation, query=""):
        return Evidence(sign_in_once(conversation.owner), conversation, query)

    return get
