"""Refusals of providers: recognised, sent again in another dialect, remembered."""

import httpx2
import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel

from chatsite.llm import dialects
from chatsite.llm.dialects import Dialect
from chatsite.llm.errors import LLMError
from chatsite.llm.streaming import ReplyStream, fetch_reply
from chatsite.llm.tool_schemas import digest_tool
from memory.engine.tools.call_forms import SENT_EXTRAS

MESSAGES = [SystemMessage("Be brief."), HumanMessage("hi!")]
FAILED_ONCE = [*MESSAGES, HumanMessage("hi again!")]


class Shape(BaseModel):
    text: str


def refusal(body, status=400):
    request = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
    response = httpx2.Response(status, request=request)
    return openai.APIStatusError("refused", response=response, body=body)


async def read(stream):
    return "".join([piece async for piece in stream])


@pytest.mark.parametrize(
    ("body", "other"),
    [
        # OpenAI o1-mini, Gemma's template in vLLM, pydantic in front of a server.
        ({"message": "Unsupported value: 'messages[0].role' does not support 'system' "
          "with this model.", "param": "messages[0].role"}, {"system_role": "user"}),
        ({"message": "System role not supported"}, {"system_role": "user"}),
        ({"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "Input should be "
          "'user' or 'assistant', not 'system'"}]}, {"system_role": "user"}),
        # Mistral's, Llama's and Anthropic's templates.
        ({"message": "Conversation roles must alternate user/assistant/user/..."},
         {"joined": True}),
        ({"message": "After the optional system message, conversation roles must "
          "alternate user/assistant"}, {"joined": True}),
        ({"message": 'roles must alternate, but found multiple "user" roles in a row'},
         {"joined": True}),
        # Fields, by name and without.
        ({"message": "Unrecognized request argument supplied: stream_options"},
         {"without": frozenset({"stream_options"})}),
        ({"detail": [{"loc": ["body", "prompt_cache_key"],
          "msg": "Extra inputs are not permitted"}]},
         {"without": frozenset({"prompt_cache_key"})}),
        ({"message": "Unknown field in the request"},
         {"without": frozenset({"stream_options", "prompt_cache_key"})}),
        ("'stream_options' is not available",
         {"without": frozenset({"stream_options"})}),
        # About something else.
        ({"message": "temperature must be below 2"}, None),
        ({"message": "The model is not supported"}, None),
        ({"message": "bad", "input": {"stream_options": {}}}, None),
        (None, None),
        (7, None),
        ([["x"] * 50] * 50, None),
    ],
)  # fmt: skip
def test_refusals_are_recognised(body, other):
    fields = {"stream_options", "prompt_cache_key"}
    found = dialects.find_other(Dialect(), refusal(body), FAILED_ONCE, fields)
    assert found == (Dialect(**other) if other else None)


NO_TOOLS = [
    (400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
    (404, "No endpoints found that support tool use. Try disabling \"question\". To "
     "learn more about provider routing, visit: https://openrouter.ai/docs"),
    (404, "No endpoints found that support the provided 'tool_choice' value."),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and '
     "--tool-call-parser to be set"),
    (500, "tools param requires --jinja flag"),
    (500, "Unsupported param: tools"),
    (500, "tools param is not fully supported yet"),
    (400, "deepseek-reasoner does not support Function Calling"),
    (400, "Thinking mode does not support this tool_choice"),
    (405, "deepinfra error: Tool calling is not supported for model: some-model"),
    (400, "litellm.UnsupportedParamsError: some-model does not support parameters: "
     "['tools'], for model=some-model. To drop these, set `litellm.drop_params`"),
    (400, "Function calling is not enabled for models/some-model"),
    (422, [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]),
]  # fmt: skip
WITH_TOOLS = [
    (401, "This key does not support tools"),
    (429, "tools are not available now"),
    (503, "tools are not available now"),
    (400, "The model is not supported"),
    (400, "Invalid schema for function 'look_up': 'city' is not of type 'object'"),
    (400, "messages with role 'tool' must be a response to a preceding message"),
    (400, "temperature: not supported"),
]


@pytest.mark.parametrize(("status", "words"), NO_TOOLS)
def test_server_without_tools_is_recognised(status, words):
    body = {"detail": words} if isinstance(words, list) else {"message": words}
    fields, error = {"tools", "stream_options"}, refusal(body, status)
    found = dialects.find_other(Dialect(), error, MESSAGES, fields)
    assert found == Dialect(without=frozenset({"tools", "tool_choice"}))
    assert not found.has_tools
    assert not found.has_form_of(Dialect())
    # Once is enough, and a request without tools is not about them.
    assert dialects.find_other(found, error, MESSAGES, {"stream_options"}) is None or (
        status == 422
    )


@pytest.mark.parametrize(("status", "words"), WITH_TOOLS)
def test_other_errors_are_no_server_without_tools(status, words):
    error = refusal({"message": words}, status)
    found = dialects.find_other(Dialect(), error, MESSAGES, {"tools", "stream_options"})
    assert found is None


def test_a_refused_choice_of_tools_is_left_out_before_the_tools():
    error = refusal({"message": "tool_choice is not supported"})
    fields = {"tools", "tool_choice"}
    found = dialects.find_other(Dialect(), error, MESSAGES, fields)
    assert found == Dialect(without=frozenset({"tool_choice"}))


def test_role_changes_from_developer_to_system_to_user():
    error = refusal({"message": "Unexpected role: developer or system"})
    roles = ["developer"]
    while found := dialects.find_other(Dialect(roles[-1]), error, MESSAGES, ()):
        roles.append(found.system_role)
    assert roles == ["developer", "system", "user"]


def test_alternating_messages_are_not_joined():
    error = refusal({"message": "Conversation roles must alternate"})
    assert dialects.find_other(Dialect(), error, MESSAGES, ()) is None
    joined = Dialect(joined=True)
    assert dialects.find_other(joined, error, FAILED_ONCE, ()) is None


@pytest.mark.parametrize("status", [401, 402, 429, 503])
def test_errors_other_than_refusals_are_ignored(status):
    error = refusal({"message": "stream_options system role not supported"}, status)
    assert dialects.find_other(Dialect(), error, MESSAGES, ["stream_options"]) is None


async def test_a_refused_field_is_left_out_once_and_for_all(upstream):
    stream = ReplyStream("strict:stream_options", MESSAGES)
    assert await read(stream) == "Reply to: hi!"
    assert stream.attempts == 2
    again = ReplyStream("strict:stream_options", MESSAGES)
    await read(again)
    assert again.attempts == 1
    sent = ["stream_options" in request.body for request in upstream.calls]
    assert sent == [True, False, False]


async def test_a_refused_field_is_no_attempt(upstream, settings):
    settings.MODEL_MAX_ATTEMPTS = 1
    stream = ReplyStream("strict:stream_options", MESSAGES)
    assert await read(stream) == "Reply to: hi!"


async def test_a_refused_schema_is_left_out(upstream, settings):
    settings.STRUCTURED_OUTPUT = True
    reply = await fetch_reply("strict:response_format", MESSAGES, schema=Shape)
    assert reply.text == "Reply to: hi!"
    assert ["response_format" in each.body for each in upstream.calls] == [True, False]


async def test_a_refused_form_is_left_to_the_caller(upstream):
    with pytest.raises(LLMError) as caught:
        await read(ReplyStream("strict:system", MESSAGES))
    assert caught.value.instead == Dialect("user")
    assert dialects.find_dialect("strict:system") == Dialect()


async def test_dialect_that_does_not_help_is_not_remembered(upstream):
    upstream.script("400", "400")
    with pytest.raises(LLMError):
        await read(ReplyStream("ok", MESSAGES, dialect=Dialect("user")))
    assert dialects.find_dialect("ok") == Dialect()


async def test_the_settings_say_it_beforehand(upstream, settings):
    settings.STREAM_USAGE, settings.SYSTEM_ROLE = False, "user"
    assert dialects.find_dialect("m") == Dialect(
        "user", without=frozenset({"stream_options"})
    )
    await read(ReplyStream("ok", MESSAGES))
    assert "stream_options" not in upstream.calls[0].body


def offer(*names):
    return [{"type": "function", "function": {"name": name}} for name in names]


OFFERED = offer("look_up", "mail", "note")
FIELDS = {"tools", "stream_options"}


def asked_for(**extras):
    call = {"name": "look_up", "args": {}, "id": "a" * 50}
    asked = AIMessage("", tool_calls=[call], additional_kwargs=extras)
    return [*MESSAGES, asked, ToolMessage("Warm", tool_call_id="a" * 50)]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("Invalid schema for function 'mail': schema must be an object", ["mail"]),
        ("tools.1.custom.input_schema: does not support oneOf at the top", ["mail"]),
        ("Invalid 'tools[2].function.name': string does not match", ["note"]),
        ("* GenerateContentRequest.tools[0].function_declarations[1].parameters."
         "properties[a].items: missing field.\n* GenerateContentRequest.tools[0]."
         "function_declarations[2].parameters: bad", ["mail", "note"]),
        ("Function `note` has invalid parameters", ["note"]),
    ],
)  # fmt: skip
def test_refused_tool_is_left_out(words, names):
    error = refusal({"message": words})
    found = dialects.find_other(Dialect(), error, MESSAGES, FIELDS, OFFERED)
    assert not found.has_form_of(Dialect())
    assert found.refused_tools == {digest_tool(each) for each in offer(*names)}
    named = dialects.find_culprit(error, MESSAGES, OFFERED)
    assert named == ("tool_refused", names[0])


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("Invalid 'tools': array too long. Expected an array with maximum length 2, "
         "but got an array with length 3 instead.", 2),
        ("too many tools: at most 1 are allowed", 1),
        ("The number of tools exceeds what this model takes", 1),
        ("The tools exceed the limit of 30000 characters", 1),
    ],
)  # fmt: skip
def test_limit_of_tools_is_learned(words, most):
    error = refusal({"message": words})
    found = dialects.find_other(Dialect(), error, MESSAGES, FIELDS, OFFERED)
    assert found.most_tools == most


@pytest.mark.parametrize(
    "words",
    [
        "JSON schema conversion failed: Unrecognized schema",
        "Failed to initialize samplers: failed to parse grammar",
        "function name is invalid, must start with a letter and can contain letters",
        "tools.function.parameters is not a valid moonshot flavored json schema",
    ],
)
def test_tools_are_left_out_where_none_is_named(words):
    error = refusal({"message": words}, 500)
    found = dialects.find_other(Dialect(), error, MESSAGES, FIELDS, OFFERED)
    assert not found.has_tools


def test_tools_are_left_out_in_the_end():
    dialect = Dialect(refused_tools=frozenset({"1", "2", "3", "4"}))
    error = refusal({"message": "Invalid schema for function 'mail'"})
    assert not dialects.find_other(dialect, error, MESSAGES, FIELDS, OFFERED).has_tools


def test_context_that_is_too_long_is_not_about_tools():
    words = "maximum context length is 8192 tokens (500 of them in tools)"
    error = refusal({"message": words})
    assert dialects.find_other(Dialect(), error, MESSAGES, FIELDS, OFFERED) is None


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        ("Invalid 'messages[2].tool_calls[0].id': string too long.", "plain", "nine"),
        ("Tool call id was x but must be a-z, A-Z, 0-9, with a length of 9.",
         "plain", "nine"),
        ("Invalid 'messages[2].tool_calls[0].function.name'", "plain", "quoted"),
        ("Invalid 'input[2].call_id': string too long. Expected a string with maximum "
         "length 64, but got a string with length 116 instead.", "plain", "nine"),
        ("No tool output found for function call call_x.", "plain", "quoted"),
        ("tool_use ids: String should match pattern", "nine", "quoted"),
        ("Requests which include `tool_use` or `tool_result` blocks must define tools",
         "plain", "quoted"),
        ("unknown variant 'tool', expected one of 'user', 'assistant'", "plain",
         "quoted"),
    ],
)  # fmt: skip
def test_calls_of_the_history_get_another_form(words, before, after):
    error, fields = refusal({"message": words}), {"stream_options"}
    dialect = Dialect(calls=before)
    found = dialects.find_other(dialect, error, asked_for(), fields)
    assert found == Dialect(calls=after)
    assert dialects.find_culprit(error, asked_for(), ()) == ("calls_refused", "")
    quoted = Dialect(calls="quoted")
    assert dialects.find_other(quoted, error, asked_for(), fields) is None
    assert dialects.find_other(dialect, error, MESSAGES, fields) is None


MISSING = [
    ("Function call is missing a thought_signature in functionCall parts.",
     "thought_signature"),
    ("The `reasoning_content` in the thinking mode must be passed back to the API.",
     "reasoning_content"),
    ("thinking is enabled but reasoning_content is missing in assistant tool call "
     "message at index 2", "reasoning_content"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "name"), MISSING)
def test_missing_extras_are_made_up_and_then_calls_quoted(words, name):
    error, fields = refusal({"message": words}), {"stream_options"}
    found = dialects.find_other(Dialect(), error, asked_for(), fields)
    assert found == Dialect(wanted=(name,))
    assert dialects.find_other(found, error, asked_for(), fields).calls == "quoted"


def test_refused_extras_are_left_out():
    words = "property 'reasoning_content' is unsupported"
    sent = asked_for(**{SENT_EXTRAS: {"message": {"reasoning_content": "Hm."}}})
    found = dialects.find_other(
        Dialect(), refusal({"message": words}), sent, {"stream_options"}
    )
    assert not found.has_extras


@pytest.mark.parametrize(
    ("name", "form"), [("mistral-large-latest", "nine"), ("gpt-5", "plain")]
)
def test_mistral_gets_ids_of_nine_letters(name, form, settings):
    settings.OPENAI_BASE_URL = "http://127.0.0.1/v1"
    assert dialects.find_dialect(name).calls == form
