"""Exports of other chats, read leniently: of a ChatGPT conversation the branch that was
open, of a Claude one everything that was said.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from django.utils.translation import gettext as _

from chatsite.llm.streaming import clean_text

from . import citations, tool_parts
from .archive import is_image_name
from .draft import Draft, Picture, Said, from_talk, read_time
from .reading import ImportItemError

# By what sources begin with: who wrote the replies.
SITES = {"chatgpt": "ChatGPT", "claude": "Claude"}
CHATGPT_ROLES = {"user": "user", "assistant": "assistant", "tool": "tool"}
CLAUDE_ROLES = {"human": "user", "assistant": "assistant"}
# How a message of ChatGPT names the file of an image, earlier and now.
POINTER = re.compile(r"(?:file-service|sediment)://(file[-_][A-Za-z0-9]+)")


def read_chatgpt(item: dict[str, Any]) -> Draft:
    mapping = item.get("mapping")
    if not isinstance(mapping, dict):
        raise _wrong_form(SITES["chatgpt"])
    key = item.get("conversation_id") or item.get("id") or item.get("create_time")
    talk = _move_pictures(_read_nodes(_open_branch(mapping, item)))
    source, site = f"chatgpt:{_shorten_id(key)}", SITES["chatgpt"]
    return from_talk(source, _clean_text(item.get("title")), talk, site)


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


def _read_nodes(nodes: list[Any]) -> Iterator[Said]:
    """What was said, with calls of tools: those are messages to another recipient, and
    the tool's messages behind one are its result."""
    asked = ""
    for number, node in enumerate(nodes):
        message = node.get("message")
        if not isinstance(message, dict) or _is_hidden(message):
            continue
        author, content = message.get("author"), message.get("content")
        author = author if isinstance(author, dict) else {}
        role = CHATGPT_ROLES.get(_clean_text(author.get("role")))
        if not role or not isinstance(content, dict):
            continue
        at, to = read_time(message.get("create_time")), message.get("recipient")
        model = _clean_text(_read_metadata(message, "model_slug"))[:60]
        said = Said(role, "", at, model=model)
        if role == "tool":
            if not asked:
                asked, name = f"call-{number}", author.get("name")
                call = tool_parts.make_call(asked, name, {})
                yield Said("assistant", "", at, calls=[call])
            said.pictures = [*_list_pictures(message, content)]
            said.text, said.answers = _read_result(content, said.pictures), asked
        elif role == "assistant" and isinstance(to, str) and to not in ("", "all"):
            asked, value = f"call-{number}", tool_parts.read_arguments(content)
            said.calls = [tool_parts.make_call(asked, to, value)]
        else:
            asked, said.text = "", "\n\n".join(_list_parts(content))
            said.pictures = [*_list_pictures(message, content)]
            if role == "assistant":
                references = _read_metadata(message, "content_references")
                said.text = citations.draw_citations(said.text, references)
        yield said


def _read_metadata(message: dict[str, Any], name: str) -> Any:
    metadata = message.get("metadata")
    return metadata.get(name) if isinstance(metadata, dict) else None


def _is_hidden(message: dict[str, Any]) -> bool:
    """What was never shown."""
    return bool(_read_metadata(message, "is_visually_hidden_from_conversation"))


def _list_parts(content: dict[str, Any]) -> Iterator[str]:
    if content.get("content_type") not in ("text", "multimodal_text", None):
        return
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, str) and part.strip():
            yield clean_text(part)
        elif isinstance(part, dict) and not _find_pointer(part):
            yield _("[attachment not included in the export]")


def _read_result(content: dict[str, Any], pictures: list[Picture]) -> str:
    """The words of a result; its images are with the reply."""
    parts = _as_list(content.get("parts"))
    others = [part for part in parts if not _find_pointer(part)]
    content = content if others == parts else {**content, "parts": others}
    place = _("[images: see the reply]") if pictures else ""
    return "\n\n".join(filter(None, [tool_parts.read_words(content), place]))


def _list_pictures(
    message: dict[str, Any], content: dict[str, Any]
) -> Iterator[Picture]:
    """The images among the parts, those that a program has plotted, and those that are
    only named beside them."""
    beside = {
        _clean_text(each.get("id")): each
        for each in _as_list(_read_metadata(message, "attachments"))
        if isinstance(each, dict)
    }
    result = _read_metadata(message, "aggregate_result")
    plots = _as_list(result.get("messages")) if isinstance(result, dict) else []
    parts = map(_find_pointer, [*_as_list(content.get("parts")), *plots])
    files = (file for file, each in beside.items() if file and _is_picture(each))
    for file in dict.fromkeys([*filter(None, parts), *files]):
        yield Picture(file, _clean_text(beside.get(file, {}).get("name")))


def _find_pointer(part: object) -> str:
    """The id of the file of an image; "": it is none."""
    if not isinstance(part, dict):
        return ""
    pointer = ""
    if part.get("content_type") == "image_asset_pointer":
        pointer = _clean_text(part.get("asset_pointer"))
    elif part.get("message_type") == "image":
        pointer = _clean_text(part.get("image_url"))
    found = POINTER.fullmatch(pointer)
    return found[1] if found else ""


def _is_picture(file: dict[str, Any]) -> bool:
    kind = _clean_text(file.get("mime_type") or file.get("mimeType"))
    return kind.startswith("image/")


def _move_pictures(talk: Iterable[Said]) -> Iterator[Said]:
    """Images that a tool has made are those of the reply, as they were shown."""
    made = Said("assistant", "")
    for each in talk:
        if each.role == "tool":
            made.at, made.model = each.at, each.model
            made.pictures += each.pictures
            each.pictures = []
        elif made.pictures and each.role == "user":
            yield made
            made = Said("assistant", "")
        elif not each.calls:
            each.pictures = [*made.pictures, *each.pictures]
            made = Said("assistant", "")
        yield each
    if made.pictures:
        yield made


def read_claude(item: dict[str, Any]) -> Draft:
    messages = item.get("chat_messages")
    if not isinstance(messages, list):
        raise _wrong_form(SITES["claude"])
    talk = []
    for number, message in enumerate(messages, 1):
        if not isinstance(message, dict):
            raise _wrong_form(SITES["claude"])
        role = CLAUDE_ROLES.get(_clean_text(message.get("sender")))
        if role == "user":
            text = "\n\n".join(_list_texts(message))
            said = Said(role, text, read_time(message.get("created_at")))
            said.pictures = [*_list_names(message)]
            talk.append(said)
        elif role:
            talk += _read_blocks(message, number)
    source, site = f"claude:{_shorten_id(item.get('uuid'))}", SITES["claude"]
    return from_talk(source, _clean_text(item.get("name")), talk, site)


def _wrong_form(site: str) -> ImportItemError:
    words = _("its messages are not in the form of %(site)s. Download the file again.")
    return ImportItemError(words % {"site": site})


def _read_blocks(message: dict[str, Any], number: int) -> Iterator[Said]:
    """A reply in its order: texts, calls of tools and their results."""
    at, content = read_time(message.get("created_at")), message.get("content")
    blocks = [block for block in _as_list(content) if isinstance(block, dict)]
    open_ids: list[str] = []
    for place, block in enumerate(blocks):
        if block.get("type") == "tool_use":
            own = _clean_text(block.get("id"))[:100]
            is_new = own and own not in open_ids
            open_ids.append(own if is_new else f"call-{number}-{place}")
            call = tool_parts.make_call(
                open_ids[-1], block.get("name"), block.get("input")
            )
            yield Said("assistant", "", at, calls=[call])
        elif block.get("type") == "tool_result" and open_ids:
            named = _clean_text(block.get("tool_use_id"))[:100]
            # Older exports do not say whose result it is.
            asked = named if named in open_ids else open_ids[-1]
            text, failed = tool_parts.read_words(block), block.get("is_error") is True
            yield Said("tool", text, at, answers=asked, failed=failed)
        elif block.get("type") == "text":
            yield Said("assistant", _clean_text(block.get("text")), at)
    rest = _list_attached(message) if blocks else _list_texts(message)
    yield Said("assistant", "\n\n".join(rest), at)


def _list_texts(message: dict[str, Any]) -> Iterator[str]:
    """The text, and the text of what was attached to it."""
    content = message.get("content")
    blocks = [
        block["text"]
        for block in _as_list(content)
        if isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    ]
    yield from (
        clean_text(text)
        for text in blocks or [_clean_text(message.get("text"))]
        if text
    )
    yield from _list_attached(message)


def _list_attached(message: dict[str, Any]) -> Iterator[str]:
    for each in _as_list(message.get("attachments")):
        if isinstance(each, dict) and (
            text := _clean_text(each.get("extracted_content"))
        ):
            yield f"{_clean_text(each.get('file_name'))}:\n\n{text}"


def _list_names(message: dict[str, Any]) -> Iterator[Picture]:
    """The images of a message of Claude, whose archive has none of their files."""
    for each in _as_list(message.get("files")):
        name = _clean_text(each.get("file_name")) if isinstance(each, dict) else ""
        if is_image_name(name):
            yield Picture("", name)


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _clean_text(value: object) -> str:
    return clean_text(value) if isinstance(value, str) else ""


def _shorten_id(value: object) -> str:
    if not isinstance(value, (str, int, float)) or value in ("", None):
        raise ImportItemError(
            _("it has no id, so importing it again would duplicate it.")
        )
    return clean_text(str(value))[:150]
