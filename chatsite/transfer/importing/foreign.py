"""Exports of other chats, read leniently: of a ChatGPT conversation the branch that was
open, of a Claude one everything that was said.
"""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from chatsite.llm.streaming import clean

from .draft import Draft, Said, from_talk, read_time
from .reading import ImportItemError

# By what sources begin with: who wrote the replies.
SITES = {"chatgpt": "ChatGPT", "claude": "Claude"}
CHATGPT_ROLES = {"user": "user", "assistant": "assistant"}
CLAUDE_ROLES = {"human": "user", "assistant": "assistant"}


def read_chatgpt(item: dict[str, Any]) -> Draft:
    mapping = item.get("mapping")
    if not isinstance(mapping, dict):
        raise ImportItemError(_("mapping: it isn't an object."))
    key = item.get("conversation_id") or item.get("id") or item.get("create_time")
    talk = [said for node in _open_branch(mapping, item) for said in _of_node(node)]
    source, site = f"chatgpt:{_short(key)}", SITES["chatgpt"]
    return from_talk(source, _text(item.get("title")), talk, site)


def _open_branch(mapping: dict[str, Any], item: dict[str, Any]) -> list[Any]:
    """From the first message to the one that was shown last."""
    name, path, seen = item.get("current_node"), [], set()
    if not isinstance(name, str) or name not in mapping:
        nodes = mapping.items()
        leaves = [n for n, v in nodes if isinstance(v, dict) and not v.get("children")]
        name = leaves[-1] if leaves else None
    while isinstance(name, str) and name in mapping and name not in seen:
        seen.add(name)
        node = mapping[name] if isinstance(mapping[name], dict) else {}
        path.append(node)
        name = node.get("parent")
    return path[::-1]


def _of_node(node: dict[str, Any]) -> Iterator[Said]:
    message = node.get("message")
    if not isinstance(message, dict) or _is_hidden(message):
        return
    author, content = message.get("author"), message.get("content")
    role = CHATGPT_ROLES.get(
        _text(author.get("role") if isinstance(author, dict) else "")
    )
    if role and isinstance(content, dict):
        text = "\n\n".join(_parts(content))
        metadata = message.get("metadata")
        slug = metadata.get("model_slug") if isinstance(metadata, dict) else ""
        at = read_time(message.get("create_time"))
        yield Said(role, text, at, model=_text(slug)[:60])


def _is_hidden(message: dict[str, Any]) -> bool:
    """What was never shown, and what was said to a tool and not to the person."""
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get(
        "is_visually_hidden_from_conversation"
    )
    return bool(hidden) or message.get("recipient", "all") not in ("all", None)


def _parts(content: dict[str, Any]) -> Iterator[str]:
    if content.get("content_type") not in ("text", "multimodal_text", None):
        return
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, str) and part.strip():
            yield clean(part)
        elif isinstance(part, dict):
            yield _("[attachment not included in the export]")


def read_claude(item: dict[str, Any]) -> Draft:
    messages = item.get("chat_messages")
    if not isinstance(messages, list):
        raise ImportItemError(_("chat_messages: it isn't a list."))
    talk = []
    for number, message in enumerate(messages, 1):
        if not isinstance(message, dict):
            raise ImportItemError(
                _("chat_messages, %(number)s: it isn't an object.") % {"number": number}
            )
        role = CLAUDE_ROLES.get(_text(message.get("sender")))
        if role:
            text = "\n\n".join(_blocks(message))
            talk.append(Said(role, text, read_time(message.get("created_at"))))
    source, site = f"claude:{_short(item.get('uuid'))}", SITES["claude"]
    return from_talk(source, _text(item.get("name")), talk, site)


def _blocks(message: dict[str, Any]) -> Iterator[str]:
    """The text, and the text of what was attached to it."""
    content = message.get("content")
    blocks = [
        block["text"]
        for block in (content if isinstance(content, list) else [])
        if isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    ]
    yield from (clean(text) for text in blocks or [_text(message.get("text"))] if text)
    attached = message.get("attachments")
    for each in attached if isinstance(attached, list) else []:
        if isinstance(each, dict) and (text := _text(each.get("extracted_content"))):
            yield f"{_text(each.get('file_name'))}:\n\n{text}"


def _text(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""


def _short(value: object) -> str:
    if not isinstance(value, (str, int, float)) or value in ("", None):
        raise ImportItemError(
            _("it has no id, so importing it again would duplicate it.")
        )
    return clean(str(value))[:150]
