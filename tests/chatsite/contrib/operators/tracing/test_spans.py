"""Spans of requests and calls: what they say, and that they say nothing else."""

import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from asgiref.sync import sync_to_async
from django.core.checks import run_checks
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from chatsite import plugins
from chatsite.contrib.endpoint import keys
from chatsite.contrib.operators.tracing import checks, span_export, spans
from memory import transcript
from memory.models import Conversation, ModelCall
from tests.chatsite.contrib.endpoint.asgi_client import send
from tests.chatsite.sockets import Chat
from tests.fakes import own_tools
from tests.fakes.calling import calling
from tests.memory.scenes import summarise

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canarybird"


class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["content-length"])
        self.server.bodies.append((self.path, self.rfile.read(length)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def collector():
    server = HTTPServer(("127.0.0.1", 0), Collector)
    server.bodies = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def exported(monkeypatch, settings):
    """Collect the exported spans in memory."""
    settings.SITE_ORIGINS = ["http://testserver"]
    kept = InMemorySpanExporter()
    monkeypatch.setattr(span_export._Way, "processor", None)
    monkeypatch.setattr(span_export._Way, "resource", None)
    monkeypatch.setattr(span_export.atexit, "register", lambda end: None)
    span_export.begin_exporting(SimpleSpanProcessor(kept))
    plugins.call_ended.connect(spans.note_call)
    plugins.step_ended.connect(spans.note_step)
    yield kept.get_finished_spans
    plugins.call_ended.disconnect(spans.note_call)
    plugins.step_ended.disconnect(spans.note_step)


@pytest.fixture
def conversation(alice, settings, upstream):
    settings.CHAT_MODEL = "ok"
    settings.TOOLS = own_tools.PATHS
    settings.SYSTEM_PROMPT = f"{CANARY} of the operator"
    made = transcript.create_conversation(alice, title=f"{CANARY} title")
    Conversation.objects.filter(pk=made.pk).update(tools=own_tools.NAMES)
    made.refresh_from_db()
    return made


async def test_a_turn_with_calls_is_one_trace(
    conversation, session, upstream, exported
):
    upstream.script(
        calling(
            ("look_up", {"city": CANARY}),
            (f"{CANARY}_tool", {}),
            ("break_down", {}),
            text=f"{CANARY} asks",
            ids=(f"{CANARY}_1", f"{CANARY}_2", f"{CANARY}_3"),
        ),
        "ok",
    )
    async with Chat(conversation, session) as chat:
        end = await chat.say(f"{CANARY} says")
    assert end["state"] == "done"
    spans = {span.name: span for span in exported()}
    assert [span.name for span in exported()].count("chat ok") == 2
    assert {*spans} - {"execute_tool unknown"} == {
        *("chat ok", "execute_tool look_up", "execute_tool break_down"),
    }
    assert len({span.context.trace_id for span in exported()}) == 1
    assert len({span.context.span_id for span in exported()}) == len(exported())
    call = await ModelCall.objects.order_by("pk").alast()
    said = dict(spans["chat ok"].attributes)
    assert said["gen_ai.operation.name"] == "chat"
    assert said["gen_ai.request.model"] == "ok"
    assert said["gen_ai.provider.name"] == call.provider
    assert said["gen_ai.conversation.id"] == str(conversation.uuid)
    assert said["gen_ai.usage.input_tokens"] == call.tokens_input
    assert said["windowpane.request.sha256"] == call.sha256
    assert said["windowpane.request.address"] == (
        f"http://testserver/c/{conversation.uuid}/?at={end['seq']}#message-{end['seq']}"
    )
    tool = dict(spans["execute_tool break_down"].attributes)
    assert tool["gen_ai.tool.name"] == "break_down"
    assert tool["error.type"]
    assert not spans["execute_tool break_down"].status.is_ok
    for span in exported():
        assert span.start_time <= span.end_time
        began = datetime.fromtimestamp(span.start_time / 1e9, UTC)
        assert abs((began - call.created_at).total_seconds()) < 60
        assert CANARY not in span.to_json()


def test_a_request_of_a_client_has_a_span(alice, settings, upstream, exported):
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = upstream.url, "sk"
    _, key = keys.create_api_key(alice, f"{CANARY} key")
    send(key, {"role": "user", "content": f"{CANARY} says"})
    [span] = exported()
    assert span.name == "chat ok"
    call = ModelCall.objects.get()
    assert span.attributes["windowpane.request.sha256"] == call.sha256
    assert CANARY not in span.to_json()


async def test_a_request_with_summaries_is_compacted(
    conversation, session, upstream, exported
):
    upstream.script("ok", "ok")
    async with Chat(conversation, session) as chat:
        await chat.say("One")
        await sync_to_async(summarise)(conversation, 1, 2)
        await chat.say("Two")
    before, after = [dict(each.attributes) for each in exported()][-2:]
    assert "gen_ai.conversation.compacted" not in before
    assert after["gen_ai.conversation.compacted"] is True


async def test_a_failure_is_an_error_and_a_temporary_one_has_no_address(
    alice, session, settings, upstream, exported
):
    settings.CHAT_MODEL = "ok"
    made = await sync_to_async(transcript.create_conversation)(alice, temporary=True)
    upstream.script("mode=500")
    async with Chat(made, session) as chat:
        end = await chat.say(f"mode=http:401 {CANARY}")
    span = exported()[-1]
    assert "windowpane.request.address" not in span.attributes
    assert "gen_ai.conversation.id" not in span.attributes
    assert (end["state"] == "failed") == ("error.type" in span.attributes)


def test_the_bytes_have_no_word(collector, exported, conversation, settings):
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = f"http://127.0.0.1:{collector.server_port}/"
    way = span_export.make_processor()
    span_export.begin_exporting(way)
    call = ModelCall.objects.create(
        conversation=conversation,
        purpose="summary",
        refs={"asked": CANARY},
        sha256="a" * 64,
        model="m",
        tokens_estimated=7,
    )
    spans.note_call(call.pk, None)
    assert way.force_flush()
    way.shutdown()
    [(path, body)] = collector.bodies
    assert path == "/v1/traces"
    assert b"gen_ai.usage" not in body
    assert b"windowpane.request.tokens_estimated" in body
    assert str(conversation.uuid).encode() in body
    assert CANARY.encode() not in body


def test_a_request_that_is_gone_has_no_span(exported):
    spans.note_call(999, 1)
    assert exported() == ()


def test_a_site_without_the_libraries_says_so(monkeypatch, settings):
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = "http://127.0.0.1:4318"
    assert "chat.E010" in [each.id for each in run_checks()]
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = ""
    assert "chat.E010" not in [each.id for each in run_checks()]
