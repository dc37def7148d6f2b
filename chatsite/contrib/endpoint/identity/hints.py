"""What clients say of a request in its headers. It narrows a search, and joins
nothing by itself."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

MOST_CHARS = 120
# The headers with a client's own id of the conversation, in the order of preference.
# `x-client-request-id` is none: it is another one for each request.
CONVERSATION = (
    "x-windowpane-client-conversation",
    "x-claude-code-session-id",
    "x-openwebui-chat-id",
    "x-librechat-conversation-id",
    "x-opencode-session",
    "agent-session-id",
    "session-id",
    "x-session-affinity",
)
# What clients send where they have none yet.
NO_ID = frozenset({"", "new", "null", "none", "undefined"})
AGENT = "x-claude-code-agent-id"
PARENT_AGENT = "x-claude-code-parent-agent-id"
COMPACTED = "x-claude-code-context-compacted"
REQUEST_CLASS = "x-claude-code-request-class"
PROMPT = "x-claude-code-prompt-id"
RETRIES = "x-stainless-retry-count"
# Between the client's id of a conversation and that of an agent in it.
AGENT_MARK = "#"
TRUE = frozenset({"1", "true", "yes"})


class Hints(NamedTuple):
    """Without any, the history alone decides."""

    # The client's id of the conversation, with that of its agent: "" if there is none.
    conversation: str = ""
    # The same of the agent that started this one.
    parent: str = ""
    is_compacted: bool = False
    # The same request was sent before.
    is_retry: bool = False
    idempotency_key: str = ""
    # What the client calls the request (`title`, `main`, ...). Shown, never trusted.
    request_class: str = ""
    prompt: str = ""


def read_hints(headers: Mapping[str, str], body: Mapping[str, Any]) -> Hints:
    """`headers` by their names in small letters."""
    session = find_session(headers, body)
    agent = bound_id(headers.get(AGENT, ""))
    parent = bound_id(headers.get(PARENT_AGENT, ""))
    return Hints(
        conversation=_name_agent(session, agent),
        parent=_name_agent(session, parent) if session and agent else "",
        is_compacted=headers.get(COMPACTED, "").strip().lower() in TRUE,
        is_retry=headers.get(RETRIES, "0").strip() not in ("", "0"),
        idempotency_key=bound_id(headers.get("idempotency-key", "")),
        request_class=bound_id(headers.get(REQUEST_CLASS, "")),
        prompt=bound_id(headers.get(PROMPT, "")),
    )


def find_session(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """The id of the conversation by its header's name, so that no two clients meet."""
    for name in CONVERSATION:
        if is_id(value := bound_id(headers.get(name, ""))):
            return f"{name}:{value}"
    key = body.get("prompt_cache_key")
    if isinstance(key, str) and is_id(value := bound_id(key)):
        return f"prompt_cache_key:{value}"
    return ""


def is_id(value: str) -> bool:
    """Not a word for none, nor a template that the client did not fill in."""
    return value.lower() not in NO_ID and not value.startswith("{{")


def bound_id(value: str) -> str:
    """An id as it is, or what stands for one that is too long or cannot be shown."""
    value = value.strip()
    if len(value) <= MOST_CHARS and value.isprintable():
        return value
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def _name_agent(session: str, agent: str) -> str:
    return f"{session}{AGENT_MARK}{agent}" if session and agent else session
