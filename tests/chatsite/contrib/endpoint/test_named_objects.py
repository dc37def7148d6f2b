"""Objects that a body may not name by id, as another user could own them."""

import json

import pytest

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.apis.named_objects import find_named_object
from chatsite.contrib.endpoint.models import ClientRequest

from .asgi_client import Call

PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}


def chat(*parts, **more):
    return {"messages": [{"role": "user", "content": [*parts]}], **more}


def responses(*items, **more):
    return {"input": [{"role": "user", "content": "Hi"}, *items], **more}


def said(part):
    return {"role": "user", "content": [part]}


TEXT = {"type": "text", "text": "Hi"}
FILE = {"type": "file", "file_id": "file_1"}
DOCUMENT = {"type": "document", "source": FILE}
CONTAINER = {"type": "container_reference", "container_id": "cntr_1"}
SHELL = {"type": "shell", "environment": CONTAINER}
SEARCH = {"type": "file_search", "vector_store_ids": ["vs_1"]}
# What Anthropic's code execution has made.
MADE = {"type": "bash_code_execution_output", "file_id": "file_1"}
RESULT = {"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_1"}
NAMED = [
    ("chat", chat({"type": "file", "file": {"file_id": "file_1"}}), "file_id"),
    ("messages", chat(DOCUMENT), "file_id"),
    ("messages", chat({"type": "tool_result", "content": [DOCUMENT]}), "file_id"),
    (
        "messages",
        chat(
            {"type": "document", "source": {"type": "content", "content": [DOCUMENT]}}
        ),
        "file_id",
    ),
    ("messages", chat({"type": "container_upload", "file_id": "file_1"}), "file_id"),
    ("messages", chat(TEXT, container="container_1"), "container"),
    ("messages", chat(TEXT, container={"id": "container_1"}), "container"),
    (
        "messages",
        chat(TEXT, container={"skills": [{"type": "custom", "skill_id": "s"}]}),
        "skill_id",
    ),
    ("responses", responses(conversation="conv_1"), "conversation"),
    ("responses", responses(conversation={"id": "conv_1"}), "conversation"),
    ("responses", responses(prompt={"id": "pmpt_1"}), "prompt"),
    ("responses", responses(said({"type": "input_file", "file_id": "f"})), "file_id"),
    ("responses", responses(said({"type": "input_image", "file_id": "f"})), "file_id"),
    (
        "responses",
        responses({"type": "function_call_output", "output": [FILE]}),
        "file_id",
    ),
    (
        "responses",
        responses(tools=[SEARCH]),
        "vector_store_ids",
    ),
    (
        "responses",
        responses(tools=[{"type": "code_interpreter", "container": "cntr_1"}]),
        "container",
    ),
    (
        "responses",
        responses(tools=[{"type": "x", "container": {"file_ids": ["file_1"]}}]),
        "file_ids",
    ),
    ("responses", responses({"type": "input_file", "file_id": "f"}), "file_id"),
    (
        "responses",
        responses(tools=[SHELL]),
        "container_id",
    ),
    (
        "responses",
        responses({"type": "shell_call", "environment": CONTAINER}),
        "container_id",
    ),
    # The provider goes on in a container that the history has.
    (
        "responses",
        responses({"type": "code_interpreter_call", "container_id": "cntr_1"}),
        "container_id",
    ),
    (
        "responses",
        responses({"type": "tool_search_output", "tools": [SEARCH]}),
        "vector_store_ids",
    ),
    (
        "responses",
        responses({"type": "additional_tools", "tools": [SHELL]}),
        "container_id",
    ),
    ("messages", chat({**RESULT, "content": {**MADE, "type": "x"}}), "file_id"),
    ("messages", chat({**RESULT, "content": DOCUMENT}), "file_id"),
    ("chat", chat({"type": "file", "file": MADE}), "file_id"),
    # As a program reads it that ignores case.
    ("chat", chat({"type": "file", "file": {"File_ID": "file_1"}}), "File_ID"),
    ("chat", chat({"type": "file", "File": {"file_id": "file_1"}}), "File"),
    ("messages", chat({**RESULT, "content": {**MADE, "Type": "x"}}), "Type"),
    ("messages", chat(TEXT, container={"Id": "container_1"}), "Id"),
    ("messages", chat(TEXT, container={"skills": [{"Type": "custom"}]}), "Type"),
    ("messages", {"messages": [{"role": "user", "Content": [FILE]}]}, "Content"),
    ("responses", responses(tools=[{"Vector_Store_Ids": ["v"]}]), "Vector_Store_Ids"),
    ("responses", responses({"type": "x", "\u017fource": FILE}), "\u017fource"),
    ("responses", responses({"type": "shell_call", "Environment": {}}), "Environment"),
]
SCHEMA = {"type": "object", "properties": {"file_id": {"type": "string"}}}
CITED = {
    "type": "output_text",
    "annotations": [
        {"type": "container_file_citation", "container_id": "c", "file_id": "f"}
    ],
}
FREE = [
    ("chat", chat({"type": "file", "file": {"file_data": "data:,x"}})),
    ("chat", chat(TEXT, conversation="mine", prompt="mine")),
    # Of an earlier reply, sent again as it came.
    ("chat", {"messages": [{"role": "assistant", "audio": {"id": "a"}}]}),
    ("responses", responses({"type": "item_reference", "id": "msg_1"})),
    ("responses", responses({"type": "message", "content": [CITED]})),
    (
        "responses",
        responses({"type": "file_search_call", "results": [{"file_id": "file_1"}]}),
    ),
    (
        "responses",
        responses({"type": "shell_call", "environment": {"type": "local"}}),
    ),
    (
        "responses",
        responses({"type": "mcp_list_tools", "tools": [{"input_schema": SCHEMA}]}),
    ),
    ("messages", chat({**RESULT, "content": {"type": "x", "content": [MADE]}})),
    (
        "chat",
        chat(TEXT, tools=[{"type": "function", "function": {"parameters": SCHEMA}}]),
    ),
    ("messages", chat({"type": "tool_use", "input": {"file_id": "mine"}})),
    ("messages", chat({"type": "tool_use", "input": {"File_Id": "x", "Type": "y"}})),
    ("messages", chat(TEXT, tools=[{"name": "open", "input_schema": SCHEMA}])),
    ("messages", chat(TEXT, tools=[{"input_examples": [{"file_id": "a.txt"}]}])),
    (
        "messages",
        chat(TEXT, container={"skills": [{"type": "anthropic", "skill_id": "pdf"}]}),
    ),
    ("responses", responses(conversation=None, prompt=None)),
    (
        "responses",
        responses(tools=[{"type": "code_interpreter", "container": {"type": "auto"}}]),
    ),
    ("responses", responses(said({"type": "input_image", "image_url": "data:,x"}))),
    ("responses", responses({"type": "function_call_output", "output": "file_id"})),
]


@pytest.mark.parametrize(("wire", "body", "field"), NAMED)
def test_named_object_is_found(wire, body, field):
    assert find_named_object(wire, body) == field


@pytest.mark.parametrize(("wire", "body"), FREE)
def test_sent_content_is_no_named_object(wire, body):
    assert find_named_object(wire, body) == ""


@pytest.fixture
def key(alice):
    return keys.create_api_key(alice, "llm")[1]


@pytest.fixture
def anywhere(upstream, settings):
    settings.ANTHROPIC_BASE_URL = upstream.url.removesuffix("/v1")
    return upstream


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("wire", "path"),
    [
        *PATHS.items(),
        ("messages", "/v1/messages/count_tokens"),
        ("responses", "/v1/responses/compact"),
    ],
)
async def test_request_with_a_named_object_is_not_sent(
    key, anywhere, settings, wire, path
):
    body = next(body for name, body, _ in NAMED if name == wire)
    raw = json.dumps({"model": "ok", "max_tokens": 9, **body}).encode()
    call = await Call(path, raw, key=key).run()
    assert call.status == 400
    error = json.loads(call.answer)["error"]
    assert "Send its content instead." in error["message"]
    assert error["type"] == "invalid_request_error"
    assert anywhere.requests == []
    assert not await ClientRequest.objects.aexists()
    settings.ENDPOINT_PROVIDER_IDS = "passed"
    await Call(path, raw, key=key).run()
    assert anywhere.requests[-1].raw == raw


READ_IN_TWO_WAYS = [
    ("chat", '"messages": [{0}], "messages": [{0}]'),
    ("chat", '"messages": [{{"role": "system", {1}, "role": "user"}}]'),
    ("chat", '"messages": [{0}], "Model": "x"'),
    ("messages", '"messages": [{0}], "container": null, "container": "c"'),
    ("messages", '"messages": [{0}], "container": {{"id": null, "id": "c"}}'),
    ("responses", '"input": [{0}], "conversation": null, "conversation": "c"'),
    ("responses", '"input": [{0}], "prompt": {{}}, "prompt": {{"id": "p"}}'),
    ("responses", '"input": [{0}], "Prompt": {{"id": "p"}}'),
    ("responses", '"input": [{{"type": "input_file", "File_Id": "f"}}, {0}]'),
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("wire", "fields"), READ_IN_TWO_WAYS)
async def test_body_that_can_be_read_in_two_ways_is_refused(
    key, anywhere, wire, fields
):
    words = '"content": "Hi"'
    message = f'{{"role": "user", {words}}}'
    raw = f'{{"model": "ok", "max_tokens": 9, {fields.format(message, words)}}}'
    call = await Call(PATHS[wire], raw.encode(), key=key).run()
    assert call.status == 400
    error = json.loads(call.answer)["error"]
    assert error["type"] == "invalid_request_error"
    assert "twice in one object" in error["message"] or "take for" in error["message"]
    assert anywhere.requests == []
    assert not await ClientRequest.objects.aexists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("depth", [100, 450, 900])
async def test_deeply_nested_body_is_refused(key, upstream, depth):
    for opened, closed in (('[{"a":', "}]"), ("[", "]")):
        tools = f'{opened * depth}{{"file_id": "f"}}{closed * depth}'
        said = '[{"role": "user", "content": "Hi"}]'
        raw = f'{{"model": "ok", "messages": {said}, "tools": {tools}}}'
        call = await Call(PATHS["chat"], raw.encode(), key=key).run()
        assert call.status == 400
    assert upstream.requests == []
