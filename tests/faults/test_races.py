"""Concurrent actions: in two processes, twice over, or cut off halfway."""

import json
import random
import socket
import time
import uuid

import pytest
from websockets.sync.client import connect

pytestmark = [
    pytest.mark.fault,
    pytest.mark.database("postgresql"),
    pytest.mark.timeout(300),
]

SUMMARISE = "[windowpane:summarise]"


def replies_asked(topology):
    """Return the number of replies that the provider was asked for."""
    firsts = (call.messages[0]["content"] for call in topology.upstream.calls)
    return sum(not first.startswith(SUMMARISE) for first in firsts)


def rows_of(pair, viewers):
    paths = {viewer.path for viewer in viewers}
    return [row for row in pair.truth.rows() if row.path in paths]


def on_both(crowd, pair, path):
    here, there = pair.sites
    return crowd.open([here], path), crowd.open([there], path)


def test_two_processes_answer_each_message_once_and_compaction_as_one(pair, crowd):
    asked = replies_asked(pair)
    viewers = []
    for _ in range(3):
        viewers += on_both(crowd, pair, pair.create("langgraph"))
    for number in range(4):
        for viewer in viewers:
            viewer.send(f"Note {number} by {uuid.uuid4().hex}")
    pair.settle_and_check(viewers, seconds=60)
    assert replies_asked(pair) - asked == 24
    assert {row.attempt for row in rows_of(pair, viewers)} == {1}
    for path in {viewer.path for viewer in viewers}:
        assert pair.person.get_json(f"{path}summaries.json")["summaries"]


def test_double_sends_make_one_message_each(pair, crowd):
    asked = replies_asked(pair)
    viewers = []
    for _ in range(5):
        first, second = on_both(crowd, pair, pair.create())
        viewers += [first, second]
        for _ in range(4):
            client_id = uuid.uuid4().hex
            first.send(f"Only once {client_id}", client_id)
            second.send(f"Only once {client_id}", client_id)
    pair.settle_and_check(viewers, seconds=60)
    assert len(rows_of(pair, viewers)) == replies_asked(pair) - asked == 20


def test_message_cut_off_before_its_ack_is_stored_once(pair, crowd):
    paths = [pair.create() for _ in range(10)]
    sent = [send_and_cut(pair, paths[n % 10]) for n in range(30)]
    viewers = {path: crowd.open(pair.sites, path) for path in paths}
    for path, client_id, text in sent:
        viewers[path].send(text, client_id)
    # They are all one user's, whose commands a process takes one after the other.
    pair.settle_and_check(viewers.values(), seconds=110)
    assert len(rows_of(pair, viewers.values())) == 30


def send_and_cut(pair, path):
    """Send on a socket of its own and drop the connection a moment later."""
    site = random.choice(pair.sites)
    client_id = uuid.uuid4().hex
    text = f"Cut off {client_id}"
    connection = connect(
        f"{site.socket_url}/ws{path}",
        origin=site.url,
        additional_headers={"Cookie": pair.cookie},
        subprotocols=["windowpane.json"],
    )
    with connection as opened:
        command = {"type": "send", "client_id": client_id, "text": text}
        opened.send(json.dumps(command))
        time.sleep(random.uniform(0, 0.005))
        opened.socket.shutdown(socket.SHUT_RDWR)
    return path, client_id, text
