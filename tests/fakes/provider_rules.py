"""What twelve providers and servers refuse of a chat request, in their words as far as
people have quoted them. Each rule says where it is from. All of them get what
openai_rules.py has, except where a comment says that one takes it.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .openai_rules import find_violations

Body = dict[str, Any]
Rule = Callable[[Body], Iterator[str]]
TOP = ("oneOf", "anyOf", "allOf", "enum", "not")


@dataclass(frozen=True)
class Provider:
    """`status`: of its refusals; `beside`: what it puts beside a call, `thinks`: its
    reasoning comes as reasoning_content; `has_details`: as reasoning_details."""

    name: str
    model: str
    rules: tuple[Rule, ...]
    status: int = 400
    beside: dict[str, Any] | None = None
    thinks: bool = False
    has_details: bool = False

    def find_refusal(self, body: Body) -> str:
        found = (said for rule in self.rules for said in rule(body))
        return next(found, "") or "; ".join(find_violations(body))

    def answer(self, x: Any) -> None:
        """A call of the first tool, with what this provider puts beside it, and a reply
        once it has the result; or a refusal."""
        if said := self.find_refusal(x.body):
            x.error(self.status, said)
            return
        messages = x.body["messages"]
        is_asked = messages[-1]["role"] == "user"
        if not (x.body.get("tools") and is_asked):
            x.texts(f"{self.name} replies.")
            x.end()
            return
        if self.thinks:
            for word in ("I look ", "it up."):
                x.chunk({"content": None, "reasoning_content": word})
        if self.has_details:
            x.chunk({"content": "", "reasoning_details": DETAILS})
        name = x.body["tools"][0]["function"]["name"]
        call_id = f"{self.name[:3].lower()}-{len(messages)}-" + "x" * 40
        call_id = "Abcdef123" if self.name in ("Mistral", "vLLM") else call_id
        function = {"name": name, "arguments": "{}"}
        call = {"index": 0, "id": call_id, "type": "function", "function": function}
        x.chunk({"role": "assistant", "tool_calls": [call | (self.beside or {})]})
        x.end("tool_calls")


def list_calls(body: Body) -> Iterator[tuple[int, int, dict[str, Any]]]:
    for place, message in enumerate(body["messages"]):
        for number, call in enumerate(message.get("tool_calls") or ()):
            yield place, number, call


def list_functions(body: Body) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, tool in enumerate(body.get("tools") or ()):
        yield number, tool["function"]


def walk(schema: Any, path: str = "parameters") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each schema inside of one."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for name, each in (schema.get("properties") or {}).items():
        yield from walk(each, f"{path}.properties[{name}]")
    yield from walk(schema.get("items"), f"{path}.items")
    for kind in ("anyOf", "oneOf", "allOf"):
        for number, each in enumerate(schema.get(kind) or ()):
            yield from walk(each, f"{path}.{kind}[{number}]")


# OpenAI: the messages of its API, as in vercel/ai 5171 (ids), opencode 48750 (names).
def limit_ids(body: Body) -> Iterator[str]:
    for place, number, call in list_calls(body):
        if (size := len(call["id"])) > 40:
            yield (
                f"Invalid 'messages[{place}].tool_calls[{number}].id': string too long."
                f" Expected a string with maximum length 40, but got a string with "
                f"length {size} instead."
            )


def match_names(body: Body) -> Iterator[str]:
    pattern = r"[a-zA-Z0-9_-]{1,64}"
    for place, number, call in list_calls(body):
        if not re.fullmatch(pattern, call["function"]["name"]):
            yield (
                f"Invalid 'messages[{place}].tool_calls[{number}].function.name': "
                "string does not match pattern '^[a-zA-Z0-9_-]+$'."
            )
    for number, function in list_functions(body):
        if not re.fullmatch(pattern, function["name"]):
            yield f"Invalid 'tools[{number}].function.name': does not match pattern."


# https://platform.openai.com/docs/api-reference/chat/create ("A max of 128 functions").
def limit_tools(body: Body) -> Iterator[str]:
    if (count := len(body.get("tools") or ())) > 128:
        yield (
            "Invalid 'tools': array too long. Expected an array with maximum length "
            f"128, but got an array with length {count} instead."
        )


# langchainjs 9804, crawl4ai 2207: OpenAI's words.
def read_top(body: Body) -> Iterator[str]:
    for _, function in list_functions(body):
        schema = function.get("parameters") or {}
        head = f"Invalid schema for function '{function['name']}': "
        if schema.get("type") != "object" or any(name in schema for name in TOP):
            yield head + (
                "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/"
                "'enum'/'not' at the top level."
            )
        if "properties" not in schema:
            yield head + "In context=(), object schema missing properties."
        for path, each in walk(schema):
            if each.get("type") == "array" and not each.get("items"):
                yield head + f"In context=({path!r}), array schema missing items."


# anthropics/claude-code 5319 and others: the words of the API.
def read_anthropic_top(body: Body) -> Iterator[str]:
    for number, function in list_functions(body):
        if any(kind in (function.get("parameters") or {}) for kind in TOP[:3]):
            yield (
                f"tools.{number}.custom.input_schema: input_schema does not support "
                "oneOf, allOf, or anyOf at the top level"
            )


# https://docs.claude.com/en/docs/agents-and-tools/tool-use: ids match this pattern; and
# the conversion of LiteLLM refuses calls in the history beside no tools.
def match_anthropic(body: Body) -> Iterator[str]:
    for place, _, call in list_calls(body):
        if not re.fullmatch(r"[a-zA-Z0-9_-]+", call["id"]):
            yield f"messages.{place}.content.1.tool_use.id: String should match pattern"
        if not body.get("tools"):
            yield (
                "Requests which include `tool_use` or `tool_result` blocks must define "
                "tools"
            )


# https://ai.google.dev/gemini-api/docs/thought-signatures: of the running turn, the
# first call of each step has one.
def want_signatures(body: Body) -> Iterator[str]:
    messages = body["messages"]
    users = [n for n, each in enumerate(messages) if each["role"] == "user"]
    for message in messages[max(users, default=0) :]:
        for call in (message.get("tool_calls") or ())[:1]:
            extra = (call.get("extra_content") or {}).get("google") or {}
            if not extra.get("thought_signature"):
                yield (
                    "Function call is missing a thought_signature in functionCall "
                    "parts. This is required for tools to work correctly."
                )


# gemini-desktop PR 7 (items), gitlab-mcp 166 (types), 5ire 42 (unknown names).
def read_gemini_schemas(body: Body) -> Iterator[str]:
    for number, function in list_functions(body):
        head = f"GenerateContentRequest.tools[0].function_declarations[{number}]."
        for path, each in walk(function.get("parameters") or {}):
            if each.get("type") == "array" and not each.get("items"):
                yield f"{head}{path}.items: missing field."
            if isinstance(each.get("type"), list):
                yield f"Proto field is not repeating, cannot start list: {head}{path}"
            if not any(name in each for name in ("type", *TOP[:3])):
                yield f"Invalid value at '{head}{path}.type'"
            if unknown := {"$ref", "$defs", "$schema", "const"} & each.keys():
                yield f"Unknown name {min(unknown)!r} at '{head}{path}'"


# https://ai.google.dev/api/caching#FunctionDeclaration: how a name begins.
def begin_names(body: Body) -> Iterator[str]:
    for number, function in list_functions(body):
        if not re.match(r"[A-Za-z_]", function["name"]):
            yield (
                f"Invalid function name at tools[0].function_declarations[{number}]. "
                "Must start with a letter or an underscore."
            )


# claurst 121, cc-switch-cli 170: DeepSeek V4 in its thinking mode.
def want_reasoning(body: Body) -> Iterator[str]:
    for _, _, _ in _without_reasoning(body):
        yield (
            "The `reasoning_content` in the thinking mode must be passed back to the "
            "API."
        )


# continuedev/continue 11600: Kimi K2.5.
def want_kimi_reasoning(body: Body) -> Iterator[str]:
    for place, _, _ in _without_reasoning(body):
        yield (
            "thinking is enabled but reasoning_content is missing in assistant tool "
            f"call message at index {place}"
        )


def _without_reasoning(body: Body) -> Iterator[tuple[int, int, dict[str, Any]]]:
    for place, number, call in list_calls(body):
        if not body["messages"][place].get("reasoning_content"):
            yield place, number, call


# gptel 1203, magentic 276, eca 233: the words of Mistral's API.
def want_nine(body: Body) -> Iterator[str]:
    for _, _, call in list_calls(body):
        if not re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]):
            yield (
                f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a "
                "length of 9."
            )


# Templates of Mistral's models: "Conversation roles must alternate".
def alternate_roles(body: Body) -> Iterator[str]:
    talk = [
        each["role"]
        for each in body["messages"]
        if each["role"] in ("user", "assistant") and not each.get("tool_calls")
    ]
    talk = [role for role in talk if role == "user"] if "tools" in body else talk
    roles = [each["role"] for each in body["messages"]]
    if any(a == b == "user" for a, b in zip(roles, roles[1:], strict=False)):
        yield "Conversation roles must alternate user/assistant/user/assistant/..."


# https://openrouter.ai/docs/guides/best-practices/reasoning-tokens: blocks of reasoning
# go back as they came, for the models that sign them.
def want_details(body: Body) -> Iterator[str]:
    messages = body["messages"]
    users = [n for n, each in enumerate(messages) if each["role"] == "user"]
    for message in messages[max(users, default=0) :]:
        details = message.get("reasoning_details")
        if message.get("tool_calls") and details != DETAILS:
            yield "reasoning_details: a signed block is missing in the tool round"


# llama.cpp 14227, BrowserOS 255: a schema without a type has no grammar; 25895: so has
# a list of tools of more than about 100,000 bytes; openclaw 107430: patterns.
def make_grammar(body: Body) -> Iterator[str]:
    for _, function in list_functions(body):
        for _, each in walk(function.get("parameters") or {}):
            kinds = ("type", "enum", "const", "$ref", *TOP)
            if each and not any(name in each for name in kinds):
                said = json.dumps(each)
                yield f"JSON schema conversion failed:\nUnrecognized schema: {said}"
            if not re.match(r"\^.*\$$|$", each.get("pattern") or ""):
                yield (
                    "JSON schema conversion failed:\nPattern must start with '^' and "
                    "end with '$'"
                )
    if len(json.dumps(body.get("tools") or [])) > 100_000:
        yield "Failed to initialize samplers: failed to parse grammar"


# vLLM: without its options a server takes no tools.
def have_no_parser(body: Body) -> Iterator[str]:
    if body.get("tools"):
        yield (
            '"auto" tool choice requires --enable-auto-tool-choice and '
            "--tool-call-parser to be set"
        )


# Ollama: of models without tools in their template (registry.ollama.ai/library/gemma3).
def take_no_tools(body: Body) -> Iterator[str]:
    if body.get("tools"):
        yield f"registry.ollama.ai/library/{body['model']} does not support tools"
    for _ in list_calls(body):
        yield "template: :1: invalid message role: tool calls are not supported"


# https://learn.microsoft.com/azure/ai-foundry/openai: the rules of OpenAI, by its code.
OPENAI = (limit_ids, match_names, limit_tools, read_top)
DETAILS = [{"type": "reasoning.encrypted", "data": "c2lnbmVk", "index": 0}]
SIGNATURE = {"extra_content": {"google": {"thought_signature": "c2lnbmVk"}}}
PROVIDERS = (
    Provider("OpenAI", "gpt-5", OPENAI),
    # The site speaks to it by the chat wire; its rules for names and ids are these.
    Provider("OpenAI responses", "gpt-5-pro", OPENAI),
    Provider("Azure", "azure-gpt-5", OPENAI),
    Provider(
        "Anthropic",
        "claude-sonnet-5",
        (match_names, read_anthropic_top, match_anthropic),
    ),
    Provider(
        "Gemini",
        "gemini-3-pro",
        (match_names, begin_names, limit_tools, read_gemini_schemas, want_signatures),
        beside=SIGNATURE,
    ),
    Provider(
        "DeepSeek",
        "deepseek-v4-pro",
        (match_names, limit_tools, read_top, want_reasoning),
        thinks=True,
    ),
    Provider(
        "Mistral",
        "mistral-large-latest",
        (want_nine, match_names, alternate_roles, limit_tools),
    ),
    # Its API has the form of OpenAI's, and templates that take one role at a time.
    Provider(
        "Qwen", "qwen3-max", (match_names, limit_tools, read_top, alternate_roles)
    ),
    Provider(
        "Kimi",
        "kimi-k2.5",
        (match_names, begin_names, limit_tools, read_top, want_kimi_reasoning),
        thinks=True,
    ),
    Provider(
        "OpenRouter",
        "anthropic/claude-sonnet-5",
        (match_names, limit_ids, read_top, want_details),
        has_details=True,
    ),
    Provider("Ollama", "gemma3", (take_no_tools,)),
    Provider("llama.cpp", "local", (make_grammar, match_names), status=500),
    Provider("vLLM", "served", (have_no_parser, want_nine, alternate_roles)),
)
