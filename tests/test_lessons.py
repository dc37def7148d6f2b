"""docs/lessons.md names the tests of every lesson; those that had no place are here."""

import ast
import json
import re
import socket
from collections import Counter

import pytest
from asgiref.sync import async_to_sync

from chatsite.live import fragments
from chatsite.pages.presenters import context_pane, thread_json, transcript_pane
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, lifecycle
from memory import actions, context, transcript
from memory.compaction import compactor
from memory.engine.tokens import count_text
from memory.models import ModelCall
from memory.view import rebuilding

from .chatsite.scenes import page_of, signed_in, talk_in_turns, url
from .memory.scenes import Recorder
from .servers import ROOT

PAGE = (ROOT / "docs" / "lessons.md").read_text()
ROWS = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| \d", line)]


def functions(path):
    """`test_it` and `TestClass::test_it` of a file."""
    for node in ast.parse((ROOT / path).read_text()).body:
        inner = node.body if isinstance(node, ast.ClassDef) else []
        yield getattr(node, "name", "")
        yield from (f"{node.name}::{getattr(each, 'name', '')}" for each in inner)


def test_every_lesson_names_tests_that_are_there():
    assert [row[0].strip("| ") for row in ROWS] == [str(n) for n in range(1, 16)]
    for row in ROWS:
        named = re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", row[-1])
        assert named, row
        for path, name in named:
            assert name in set(functions(path)), f"{path}::{name}"


def compact(conversation):
    summariser = compactor.Summariser("m", Recorder())
    return async_to_sync(compactor.compact_conversation)(conversation.pk, summariser)


@pytest.fixture
def compacted(alice):
    """Twelve turns and three compactions; the window holds what came after the last."""
    made = transcript.create_conversation(alice, preset="langgraph")
    for number in range(3):
        talk_in_turns(made, *(f"Say {number}.{each} <b>" for each in range(4)))
        assert compact(made).versions
    talk_in_turns(made, "And then?")
    return made


@pytest.mark.django_db(transaction=True)
def test_every_request_begins_with_the_system_prompt_after_any_compaction(compacted):
    calls = list(ModelCall.objects.filter(purpose="reply").order_by("id"))
    versions = {version for call in calls for version in call.refs["summaries"]}
    assert versions == {1, 2, 3}
    prompt = {"role": "system", "content": context.find_system_prompt(compacted)}
    for call in calls:
        wire = rebuilding.rebuild_context(call).wire
        assert (wire[0], rebuilding.verify_context(call)) == (prompt, True)
        assert [each["role"] for each in wire].count("system") == 1


@pytest.mark.django_db(transaction=True)
def test_marks_bar_request_and_header_say_the_same(compacted):
    actions.pin_message(compacted, 1)
    actions.exclude_messages(compacted, [25])
    commands.submit_message(compacted, text="Waiting", client_id="w")
    items = transcript_pane.show_latest_turns(compacted).items
    marks = [e.location for item in items for e in getattr(item, "messages", ())]
    view = context_pane.model_view(compacted)
    sent = thread_json.describe_context(compacted, None)
    counts = Counter({"queued": "window"}.get(mark.kind, mark.kind) for mark in marks)
    assert counts == view.counts
    assert view.accounted == view.total == len(marks) == 27
    assert {m.version for m in marks} - {None} == set(sent["refs"]["summaries"])
    assert view.gauge.used == sum(part.tokens for part in view.sections)
    assert view.gauge.used == sent["tokens"]["estimated"]
    assert (view.sha256, list(view.request_messages)) == (
        sent["sha256"],
        sent["messages"],
    )
    html = signed_in(compacted.owner).get(url("context", compacted)).content.decode()
    assert "All 27 messages accounted for" in html
    assert f">{len(view.request_messages)} messages<" in html


@pytest.mark.django_db(transaction=True)
def test_a_message_that_no_model_can_take_is_refused_and_the_limit_is_named(
    compacted, settings
):
    settings.CONTEXT_WINDOW = 500
    with pytest.raises(CommandError, match=r"about 2,4\d\d tokens.*takes 500") as error:
        commands.submit_message(compacted, text="字" * 3_300, client_id="giant")
    assert error.value.code == "too_long"
    assert not compacted.messages.filter(client_id="giant").exists()
    commands.submit_message(compacted, text="字" * 300, client_id="fits")


@pytest.mark.django_db(transaction=True)
def test_words_of_a_reply_are_not_announced(compacted):
    page = fragments.LivePage()
    list(page.sync(compacted))
    turn = commands.submit_message(compacted, text="Speak", client_id="s").turn
    running = events.State(turn.pk, "running")
    page.draw_turn(compacted.pk, turn.pk, "")
    lifecycle.claim(compacted.pk)
    page.draw_turn(compacted.pk, turn.pk, "")
    frames = [events.Frame(turn.pk, 1, 0, "Once " * n) for n in range(1, 5)]
    html = "".join(page.draw_frame(frame) for frame in frames)
    assert "Once" in html
    assert not re.search(r"role=|aria-live|status", html)
    seen = [running, *frames, events.TurnEnd(turn.pk, "done", 28, "Once")]
    said = [fragments.status_of(event, compacted.pk) for event in seen]
    assert [text for text in said if text] == ["Generating", "Reply complete"]
    log = page_of(signed_in(compacted.owner), compacted)
    assert re.search(r'id="transcript"\s+role="log"[^>]+aria-live="off"', log)


@pytest.fixture
def offline(monkeypatch):
    """Forbid name look-ups, and calls to other machines."""
    connect = socket.socket.connect

    def stay_here(self, address):
        host = address[0] if isinstance(address, tuple) else "localhost"
        assert host in ("localhost", "127.0.0.1", "::1"), f"call to {host}"
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", stay_here)
    monkeypatch.setattr(socket, "getaddrinfo", pytest.fail)


@pytest.mark.django_db(transaction=True)
def test_the_first_page_and_the_token_count_need_no_network(offline, compacted):
    client = signed_in(compacted.owner)
    pages = [client.get("/"), client.get(url("detail", compacted))]
    assert [page.status_code for page in pages] == [200, 200]
    addresses = r'(?:src|href|action|hx-get|hx-post|ws-connect)="([^"]*)"'
    for page in pages:
        found = re.findall(addresses, page.content.decode())
        assert all(re.match(r"(/(?!/)|#|\?)", address) for address in found), found
    assert count_text("Wie viele? 多少？") > 0
    assert json.loads(client.get(url("context-json", compacted)).content)["sha256"]
