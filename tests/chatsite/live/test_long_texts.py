"""Incoming texts of a socket are limited; outgoing ones are not."""

import json

import pytest
from websockets.exceptions import ConnectionClosed

from chatsite.live import backpressure
from tests.clients import Person
from tests.servers import PlainSite, Site

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=[Site, PlainSite], ids=["serve.py", "daphne"])
def site(request, new_database, provider):
    keys = {"OPENAI_BASE_URL": provider.url, "CONTEXT_WINDOW": "1000000"}
    with new_database() as url:
        env = {"DATABASE_URL": url, "CHAT_MODEL": "ok", **keys}
        with request.param(env) as running:
            yield running
            running.show_log()
            assert "Traceback" not in running.log()


def open_chat(person, path):
    chat = person.chat(path)
    # The library's own limit, in the way of texts that the contract allows.
    chat.connection.protocol.max_size = None
    return chat


def test_a_reply_as_long_as_can_be_arrives_whole(site, provider):
    person = Person(site, "ann")
    path = person.create()
    with open_chat(person, path) as chat:
        provider.script("huge:199000")
        assert len(chat.say("Tell me everything")["text"]) == 199_000
        with open_chat(person, path) as late:
            late.command(type="sync")
            assert len(late.until("end")[-1]["text"]) == 199_000


def test_the_longest_message_may_be_escaped_whole(site):
    person = Person(site, "ben")
    path = person.create()
    text = "\U0001f98a" * 32_000
    with open_chat(person, path) as chat:
        assert len(json.dumps(text)) > 256 * 1024
        chat.command(type="send", client_id="c", text=text)  # escapes all of it
        assert chat.until("ack", client_id="c")
        assert chat.until("end")[-1]["state"] == "done"
    assert person.get_json(f"{path}transcript.json")["messages"][0]["text"] == text


def test_text_longer_than_any_message_is_refused(site):
    person = Person(site, "cleo")
    path = person.create()
    with open_chat(person, path) as chat:
        chat.socket.send("x" * 450_000)
        assert chat.event()["code"] == "too_long"
        chat.socket.send("x" * (backpressure.MAX_INCOMING + 1))
        with pytest.raises(ConnectionClosed):
            chat.event()
