"""The fake provider, asked by the provider's own client."""

import json
import re
import subprocess
import sys
import urllib.request

import openai
import pytest

from tests.servers import ROOT

from .upstream import MODES, Upstream, split_pieces, tell_story

SUMMARISE = {"role": "system", "content": "[windowpane:summarise]\nSummarise."}


@pytest.fixture
def server():
    with Upstream() as server:
        yield server


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=server.url, api_key="sk-x", max_retries=0) as client:
        yield client


def ask(client, model, *messages, **options):
    messages = messages or ({"role": "user", "content": "hi there"},)
    return client.chat.completions.create(model=model, messages=messages, **options)


def test_provider_answers_whole(client):
    reply = ask(client, "ok")
    assert reply.choices[0].message.content == "Reply to: hi there"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.prompt_tokens == 6


def test_stream_has_no_usage_unless_requested(client):
    chunks = list(ask(client, "ok", stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == "Reply to: hi there"
    assert all(chunk.usage is None for chunk in chunks)


def test_stream_reports_usage_when_requested(client):
    options = {"include_usage": True}
    chunks = list(ask(client, "ok", stream=True, stream_options=options))
    assert chunks[-1].usage.completion_tokens == 5
    assert chunks[-1].choices == []


def test_provider_writes_summaries(client):
    messages = [{"n": 1, "role": "user", "text": "I'm Lance"}]
    document = {"previous_summary": "Before.", "messages": messages, "max_tokens": 9}
    newest = {"role": "user", "content": json.dumps(document)}
    reply = ask(client, "ok", SUMMARISE, newest).choices[0].message.content
    assert reply == "Before.\nMessages 1 to 1:\nus"


def test_provider_records_the_request(client, server):
    ask(client, "ok", temperature=0)
    (call,) = server.calls
    assert call.headers["authorization"] == "Bearer sk-x"
    assert call.body["temperature"] == 0
    assert call.messages == [{"role": "user", "content": "hi there"}]


def test_script_comes_before_the_name_of_the_model(client, server):
    server.script("500")
    with pytest.raises(openai.InternalServerError):
        ask(client, "ok")
    assert ask(client, "ok").choices[0].finish_reason == "stop"


def test_a_message_can_choose_how_it_is_answered(client):
    wish = {"role": "user", "content": "mode=500|story:s1:6:0"}
    with pytest.raises(openai.InternalServerError):
        ask(client, "ok", wish, stream=True)
    for _ in range(2):
        chunks = ask(client, "ok", wish, stream=True)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert text == tell_story("s1", "6")


def test_stories_with_two_names_differ():
    assert tell_story("a", "20") != tell_story("b", "20")
    assert {len(char.encode()) for char in tell_story("a", "20")} == {1, 2, 3, 4}


def test_provider_lists_its_models(client):
    assert {model.id for model in client.models.list()} == set(MODES)


def test_client_that_hangs_up_is_noticed(client, server):
    stream = ask(client, "drip", stream=True)
    next(iter(stream))
    stream.close()
    assert server.wait_closed_early()


def test_provider_stops_while_a_request_hangs(client, server):
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.2).chat.completions.create(
            model="hang", messages=[{"role": "user", "content": "hi"}]
        )
    server.stop()


@pytest.mark.parametrize(
    "text", ["", "one two", "  a\n\nb ", "没有空格的一段中文文字很长"]
)
def test_pieces_make_up_the_text(text):
    assert "".join(split_pieces(text)) == text


def test_provider_runs_from_the_command_line():
    command = [sys.executable, "-m", "tests.fakes.upstream", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        try:
            line = run.stdout.readline()
            url = re.fullmatch(r"OPENAI_BASE_URL=(http://\S+)\n", line)[1]
            with urllib.request.urlopen(f"{url}/models") as response:
                assert response.status == 200
        finally:
            run.kill()
