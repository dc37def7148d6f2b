"""Large imports beside replies: no reply waits for one, and none outlives its server.

IMPORT_MB makes the file larger.
"""

import io
import json
import os
import random
import signal
import time
import urllib.request
import uuid
from statistics import median

import pytest

from tests.clients import Person
from tests.patience import PATIENCE, wait_for

pytestmark = [
    pytest.mark.fault,
    pytest.mark.database("sqlite"),
    pytest.mark.timeout(300),
]

MEGABYTES = float(os.environ.get("IMPORT_MB", "0.4"))
# How much later than alone the first word may come, where the machine does other things
# besides: idle it is a tenth of a second.
LATE = 6.0
HIDDEN = "SELECT count(*) FROM memory_conversation WHERE deleted_at < '1971-01-01'"
STATE = "SELECT state, done, error FROM chat_job WHERE kind = 'import' ORDER BY id DESC"


def make_file(megabytes):
    chance = random.Random(2)
    words = [f"w{n:05}" for n in range(20_000)]
    talk = [
        {
            "sender": ("human", "assistant")[n % 2],
            "created_at": "2026-01-01T00:00:00Z",
            "text": " ".join(chance.choices(words, k=1_400)),
        }
        for n in range(int(megabytes * 100))
    ]
    name = uuid.uuid4().hex
    return json.dumps([{"uuid": name, "name": name, "chat_messages": talk}]).encode()


def upload(person, data):
    """The form of the page, as a browser sends it."""
    token = next(each.value for each in person.cookies if "csrf" in each.name)
    mark = uuid.uuid4().hex
    body = io.BytesIO()
    for head, value in (
        ('name="csrfmiddlewaretoken"', token.encode()),
        ('name="file"; filename="conversations.json"', data),
    ):
        body.write(f"--{mark}\r\nContent-Disposition: form-data; {head}\r\n".encode())
        body.write(b"Content-Type: application/json\r\n\r\n" * ("file" in head))
        body.write(b"\r\n" * ("file" not in head) + value + b"\r\n")
    body.write(f"--{mark}--\r\n".encode())
    request = urllib.request.Request(
        f"{person.site.url}/import/",
        body.getvalue(),
        {"Content-Type": f"multipart/form-data; boundary={mark}"},
    )
    with person.opener.open(request, timeout=60) as answer:
        return answer.read().decode()


def state(topology):
    return topology.truth.query(STATE)[0]


def first_word(chat):
    """Return how long a message waits for the beginning of its reply."""
    sent = time.monotonic()
    ack = chat.send(f"mode=story:{uuid.uuid4().hex[:6]}:5:0.01")
    chat.until("frame", turn=ack["turn"])
    waited = time.monotonic() - sent
    chat.until("end", turn=ack["turn"])
    return waited


def test_replies_do_not_wait_for_a_large_import(single, crowd):
    [viewer] = single.begin_stories(crowd, 1, words=100)
    other = Person(single.sites[0], f"reader-{uuid.uuid4().hex[:6]}")
    page = upload(other, make_file(MEGABYTES))
    assert "import/progress/" in page
    waits = []
    with single.person.chat(single.create()) as chat:
        quiet = max(first_word(chat) for _ in range(5))
        begun = time.monotonic()
        while state(single)[0] in ("queued", "running"):
            waits.append(first_word(chat))
            time.sleep(0.2)
    took = time.monotonic() - begun
    longest = max(waits)
    print(  # noqa: T201
        f"{MEGABYTES} MB in {took:.0f} s; first word after {quiet:.2f} s alone, "
        f"beside the import after {longest:.2f} s at most, {median(waits):.2f} s mostly"
    )
    assert state(single)[0] == "done", state(single)
    assert "1 conversation imported" in other.get("/import/")
    assert longest < quiet + LATE * PATIENCE
    single.settle_and_check([viewer])
    assert single.truth.attempts([viewer]) == [1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_import_ends_with_its_server(single, number):
    other = Person(single.sites[0], f"reader-{uuid.uuid4().hex[:6]}")
    upload(other, make_file(MEGABYTES))
    wait_for(lambda: state(single)[1] > 5, 60, "the first messages")
    assert single.truth.query(HIDDEN) == [(1,)]
    single.sites[0].send(number)
    single.sites[0].process.wait(20 * PATIENCE)
    single.start_all()
    wait_for(lambda: state(single)[0] == "failed", 40, "the sweep")
    wait_for(lambda: single.truth.query(HIDDEN) == [(0,)], 20, "the purge")
    assert "The server was restarted" in other.get("/import/")
    assert single.auditor.run() == "clean"
