"""Rules of twelve providers and servers for a chat request, in their own words as far
as people have quoted them. Above each rule stands its source: the page or the issue,
and the sentence there. All of them also get what openai_rules.py has.
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


# vercel/ai issue 5171, of OpenAI: "Invalid 'messages[2].tool_calls[0].id': string too
# long. Expected a string with maximum length 40, but got a string with length 43
# instead." Portkey-AI/gateway issue 1062 has the same of Azure.
def limit_ids(body: Body) -> Iterator[str]:
    for place, number, call in list_calls(body):
        if (size := len(call["id"])) > 40:
            yield (
                f"Invalid 'messages[{place}].tool_calls[{number}].id': string too long."
                f" Expected a string with maximum length 40, but got a string with "
                f"length {size} instead."
            )


# AnswerDotAI/fastllm issue 45, of OpenAI's /responses: "Invalid 'input[95].call_id':
# string too long. Expected a string with maximum length 64, but got a string with
# length 116 instead." A gateway makes the items of its input from the messages.
def limit_call_ids(body: Body) -> Iterator[str]:
    for place, _, call in list_calls(body):
        if (size := len(call["id"])) > 64:
            yield (
                f"Invalid 'input[{place}].call_id': string too long. Expected a string "
                f"with maximum length 64, but got a string with length {size} instead."
            )


# The same route takes calls as items: their names are at `input`, those of tools at
# `tools[].name`, without a `function` around them.
def match_item_names(body: Body) -> Iterator[str]:
    pattern = r"[a-zA-Z0-9_-]{1,128}"
    for place, _, call in list_calls(body):
        if not re.fullmatch(pattern, call["function"]["name"]):
            yield (
                f"Invalid 'input[{place}].name': string does not match pattern. "
                "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            )
    for number, function in list_functions(body):
        if not re.fullmatch(pattern, function["name"]):
            yield (
                f"Invalid 'tools[{number}].name': string does not match pattern. "
                "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            )


# opencode issue 48750, of OpenAI: "Invalid 'tools[0].function.name': string does not
# match pattern." Of the length: mrexodia/ida-pro-mcp issue 129, of DeepSeek, "Expected
# a string with maximum length 64"; QwenLM/Qwen3-VL issue 2069, "The length of the tool
# name cannot exceed 64."; anthropics/claude-code issue 3102, "tools.17.custom.name:
# String should have at most 64 characters".
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


# zed issue 42393, of OpenAI: "Invalid 'tools': array too long. Expected an array with
# maximum length 128, but got an array with length 133 instead."
# https://platform.kimi.ai/docs/api/tool-use: "The number of functions in tools
# currently cannot exceed 128."
def limit_tools(body: Body) -> Iterator[str]:
    if (count := len(body.get("tools") or ())) > 128:
        yield (
            "Invalid 'tools': array too long. Expected an array with maximum length "
            f"128, but got an array with length {count} instead."
        )


# langchain-ai/langchainjs issue 9804 and unclecode/crawl4ai issue 2207, of OpenAI.
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


# anthropics/claude-code issue 5319: "tools.106.custom.input_schema: input_schema does
# not support oneOf, allOf, or anyOf at the top level".
def read_anthropic_top(body: Body) -> Iterator[str]:
    for number, function in list_functions(body):
        if any(kind in (function.get("parameters") or {}) for kind in TOP[:3]):
            yield (
                f"tools.{number}.custom.input_schema: input_schema does not support "
                "oneOf, allOf, or anyOf at the top level"
            )


# CommandCodeAI/command-code issue 323: "messages.1.content.1.tool_use.id: String should
# match pattern '^[a-zA-Z0-9_-]+$'". That calls need tools is of Bedrock, as in
# langgenius/dify issue 17545 ("The toolConfig field must be defined when using toolUse
# and toolResult content blocks"), and of Anthropic's models through a gateway.
def match_anthropic(body: Body) -> Iterator[str]:
    for place, _, call in list_calls(body):
        if not re.fullmatch(r"[a-zA-Z0-9_-]+", call["id"]):
            yield f"messages.{place}.content.1.tool_use.id: String should match pattern"
        if not body.get("tools"):
            yield (
                "Requests which include `tool_use` or `tool_result` blocks must define "
                "tools"
            )


# nearai/ironclaw issue 1510: "Function call is missing a thought_signature in
# functionCall parts. This is required for tools to work correctly". Of the running
# turn, the first call of each step has one:
# https://ai.google.dev/gemini-api/docs/thought-signatures
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


# AstrBotDevs/AstrBot issue 5416, of Gemini: "Invalid function name. Must start with a
# letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots
# (.), colons (:), or dashes (-), with a maximum length of 64."
def begin_names(body: Body) -> Iterator[str]:
    for number, function in list_functions(body):
        if not re.fullmatch(r"[A-Za-z_][\w.:-]{0,63}", function["name"], re.ASCII):
            yield (
                f"GenerateContentRequest.tools[0].function_declarations[{number}].name:"
                " Invalid function name. Must start with a letter or an underscore. "
                "Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons "
                "(:), or dashes (-), with a maximum length of 64."
            )


# https://platform.kimi.ai/docs/api/tool-use: "a name (which must follow this regular
# expression: ^[a-zA-Z_][a-zA-Z0-9-_]{2,63}$)". MoonshotAI/kimi-cli issue 1773:
# "function name is invalid, must start with a letter and can contain letters, numbers,
# underscores, and dashes".
def match_kimi_names(body: Body) -> Iterator[str]:
    for _, function in list_functions(body):
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{2,63}", function["name"]):
            yield (
                "function name is invalid, must start with a letter and can contain "
                "letters, numbers, underscores, and dashes"
            )


# MoonshotAI/kimi-cli issue 2531: "tools.function.parameters is not a valid moonshot
# flavored json schema, details: <At path 'root': when using anyOf, type should be
# defined in anyOf items instead of the parent schema>".
def read_kimi_schemas(body: Body) -> Iterator[str]:
    for _, function in list_functions(body):
        for path, each in walk(function.get("parameters") or {}):
            if "anyOf" in each and "type" in each:
                yield (
                    "tools.function.parameters is not a valid moonshot flavored json "
                    f"schema, details: <At path '{path}': when using anyOf, type "
                    "should be defined in anyOf items instead of the parent schema>"
                )


# syt2/paper-chat-for-zotero issue 16, of DeepSeek V4: "The `reasoning_content` in the
# thinking mode must be passed back to the API."
def want_reasoning(body: Body) -> Iterator[str]:
    for _, _, _ in _without_reasoning(body):
        yield (
            "The `reasoning_content` in the thinking mode must be passed back to the "
            "API."
        )


# continuedev/continue issue 11711, of Kimi K2.5: "thinking is enabled but
# reasoning_content is missing in assistant tool call message at index 19".
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


# karthink/gptel issue 1203, of Mistral: "Tool call id was call_0fypS1hVX but must be
# a-z, A-Z, 0-9, with a length of 9".
def want_nine(body: Body) -> Iterator[str]:
    for _, _, call in list_calls(body):
        if not re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]):
            yield (
                f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a "
                "length of 9."
            )


# microsoft/autogen issue 1037, of a template of Mistral's in vLLM: "Conversation roles
# must alternate user/assistant/user/assistant/..."
def alternate_roles(body: Body) -> Iterator[str]:
    roles = [each["role"] for each in body["messages"]]
    if any(a == b == "user" for a, b in zip(roles, roles[1:], strict=False)):
        yield "Conversation roles must alternate user/assistant/user/assistant/..."


# https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks, as
# RooCodeInc/Roo-Code pull request 9506 follows it: blocks of reasoning go back as they
# came, for the models that sign them. The words are our own.
def want_details(body: Body) -> Iterator[str]:
    messages = body["messages"]
    users = [n for n, each in enumerate(messages) if each["role"] == "user"]
    for message in messages[max(users, default=0) :]:
        details = message.get("reasoning_details")
        if message.get("tool_calls") and details != DETAILS:
            yield "reasoning_details: a signed block is missing in the tool round"


# containers/kubernetes-mcp-server issue 758, of llama.cpp: {"error":{"code":400,
# "message":"JSON schema conversion failed:\nPattern must start with '^' and end with
# '$'"}}. ggml-org/llama.cpp issue 14227: "Unrecognized schema"; 25895: no grammar for
# tools of more than about 100,000 bytes.
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


# vllm-project/vllm issue 9986: "\"auto\" tool choice requires --enable-auto-tool-choice
# and --tool-call-parser to be set".
def have_no_parser(body: Body) -> Iterator[str]:
    if body.get("tools"):
        yield (
            '"auto" tool choice requires --enable-auto-tool-choice and '
            "--tool-call-parser to be set"
        )


# louisho5/picobot issue 6, of Ollama: "registry.ollama.ai/library/gemma3:4b does not
# support tools".
def take_no_tools(body: Body) -> Iterator[str]:
    if body.get("tools"):
        yield f"registry.ollama.ai/library/{body['model']} does not support tools"
    for _ in list_calls(body):
        yield "template: :1: invalid message role: tool calls are not supported"


# https://learn.microsoft.com/azure/ai-foundry/openai: the rules of OpenAI, by its code.
OPENAI = (limit_ids, match_names, limit_tools, read_top)
RESPONSES = (limit_call_ids, match_item_names, limit_tools, read_top)
DETAILS = [{"type": "reasoning.encrypted", "data": "c2lnbmVk", "index": 0}]
SIGNATURE = {"extra_content": {"google": {"thought_signature": "c2lnbmVk"}}}
PROVIDERS = (
    Provider("OpenAI", "gpt-5", OPENAI),
    # The site uses the chat API for it, through a gateway.
    Provider("OpenAI responses", "gpt-5-pro", RESPONSES),
    Provider("Azure", "azure-gpt-5", OPENAI),
    Provider(
        "Anthropic",
        "claude-sonnet-5",
        (match_names, read_anthropic_top, match_anthropic),
    ),
    Provider(
        "Gemini",
        "gemini-3-pro",
        (begin_names, limit_tools, read_gemini_schemas, want_signatures),
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
        (match_kimi_names, limit_tools, read_kimi_schemas, want_kimi_reasoning),
        thinks=True,
    ),
    Provider(
        "OpenRouter",
        "anthropic/claude-sonnet-5",
        (match_names, limit_ids, read_top, want_details),
        has_details=True,
    ),
    Provider("Ollama", "gemma3", (take_no_tools,)),
    Provider("llama.cpp", "local", (make_grammar,)),
    Provider("vLLM", "served", (have_no_parser, want_nine, alternate_roles)),
)
