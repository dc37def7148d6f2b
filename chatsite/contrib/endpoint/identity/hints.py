"""The hints in a request's headers. They narrow a search and join nothing."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

MOST_CHARS = 120
# Headers with a client's own conversation id, in the order of preference. Not
# `x-client-request-id`: it differs in each request.
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
# Values that clients send while they have no id.
NO_ID = frozenset({"", "new", "null", "none", "undefined"})
AGENT = "x-claude-code-agent-id"
PARENT_AGENT = "x-claude-code-parent-agent-id"
COMPACTED = "x-claude-code-context-compacted"
RETRIES = "x-stainless-retry-count"
# Separator of a conversation's id and an agent's id.
AGENT_MARK = "#"
TRUE = frozenset({"1", "true", "yes"})


class Hints(NamedTuple):
    """The hints of one request; without any, the history alone decides."""

    # The client's conversation id, with its agent's id; "" if there is none.
    conversation: str = ""
    # Likewise, the id for the agent that started this one.
    parent: str = ""
    is_compacted: bool = False
    # The same request was sent before.
    is_retry: bool = False
    idempotency_key: str = ""


def read_hints(headers: Mapping[str, str], body: Mapping[str, Any]) -> Hints:
    """Return the hints of a request; the names in `headers` are in lower case."""
    session = find_session(headers, body)
    agent = bound_id(headers.get(AGENT, ""))
    parent = bound_id(headers.get(PARENT_AGENT, ""))
    return Hints(
        conversation=_name_agent(session, agent),
        parent=_name_agent(session, parent) if session and agent else "",
        is_compacted=headers.get(COMPACTED, "").strip().lower() in TRUE,
        is_retry=headers.get(RETRIES, "0").strip() not in ("", "0"),
        idempotency_key=bound_id(headers.get("idempotency-key", "")),
    )


def find_session(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return the conversation id or "".

    The header's name is part of it, so that ids of different clients never collide.
    """
    for name in CONVERSATION:
        if is_id(value := bound_id(headers.get(name, ""))):
            return f"{name}:{value}"
    key = body.get("prompt_cache_key")
    if isinstance(key, str) and is_id(value := bound_id(key)):
        return f"prompt_cache_key:{value}"
    return ""


def is_id(value: str) -> bool:
    """Return whether a value is an id: no word for none, no unfilled template."""
    return value.lower() not in NO_ID and not value.startswith("{{")


def bound_id(value: str) -> str:
    """Return the id, or its SHA-256 if it is too long or not printable."""
    value = value.strip()
    if len(value) <= MOST_CHARS and value.isprintable():
        return value
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def _name_agent(session: str, agent: str) -> str:
    return f"{session}{AGENT_MARK}{agent}" if session and agent else session
