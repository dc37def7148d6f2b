"""The exports of Claude, read leniently.

Only the branch of a conversation that was used last is imported.
"""

from collections.abc import Iterator
from typing import Any

from chatsite.features.importing.files.archive import is_image_name
from chatsite.features.importing.files.draft import (
    Draft,
    DraftMessage,
    ImportedPicture,
    from_talk,
    read_time,
)
from chatsite.features.importing.files.reading import SITES
from chatsite.features.importing.files.remainder import (
    BRANCH,
    OTHER,
    Remainder,
    has_words,
    list_words,
)

from . import citations, memories, tool_parts
from .foreign import find_branch, make_source, take_messages
from .tool_parts import as_list, list_dicts, read_string

ROLES = {"human": "user", "assistant": "assistant"}
# What stands in the text of a message in place of blocks.
UNSHOWN = "This block is not supported on your current device yet."


def read_claude(item: dict[str, Any]) -> Draft:
    if "conversations_memory" in item:
        return memories.read_claude_memories(item)
    site = SITES["claude"]
    messages = take_messages(item, "chat_messages", list, site)
    rest = Remainder()
    shown = _list_open_branch(item, messages, rest)
    talk = (said for n, each in shown for said in _read_claude_message(each, n, rest))
    source = make_source("claude", item.get("uuid"))
    return from_talk(source, read_string(item.get("name")), talk, site, rest)


def _list_open_branch(
    item: dict[str, Any], messages: list[Any], rest: Remainder
) -> list[tuple[int, dict[str, Any]]]:
    """Return the messages of the branch that was open, with their numbers.

    Older exports have no tree: then all messages.
    """
    parents: dict[str, object] = {}
    placed, before = {}, None
    for number, message in enumerate(messages, 1):
        if not isinstance(message, dict):
            rest.count_words(message, OTHER)
            continue
        own, parent = message.get("uuid"), message.get("parent_message_uuid")
        own = own if isinstance(own, str) and own not in placed else f"#{number}"
        # A first message names a parent that is in no file.
        parents[own] = parent if has_words(parent) else before
        placed[own], before = (number, message), own
    if not any(parent in placed for parent in parents.values()):
        return [*placed.values()]
    leaf = item.get("current_leaf_message_uuid")
    leaf = leaf if isinstance(leaf, str) and leaf in placed else before
    path = find_branch(leaf, parents)
    others = (placed[name][1] for name in placed.keys() - {*path})
    for each in others:
        said = each.get("content") or each.get("text")
        rest.count_words([said, each.get("attachments"), each.get("files")], BRANCH)
    return [placed[name] for name in path]


def _read_claude_message(
    message: dict[str, Any], number: int, rest: Remainder
) -> Iterator[DraftMessage]:
    """Yield a message in its order.

    Texts, thoughts, calls of tools and their results come first, then attachments.
    """
    role, at = ROLES.get(read_string(message.get("sender"))), None
    if not role:
        rest.count_words(message.get("content") or message.get("text"), "sender")
        return
    at, texts = read_time(message.get("created_at")), []
    blocks = as_list(message.get("content"))
    if role == "user":
        texts = [text for each in blocks for text in _list_block_words(each, rest)]
    else:
        for said in _read_reply_blocks(blocks, number, rest):
            texts.append(said.text if said.role == role else "")
            said.at = at
            yield said
    whole = read_string(message.get("text"))
    if not any(texts) and UNSHOWN not in whole:
        texts.append(whole)
    elif role != "user":
        texts = []
    # By name: the archive has no image files.
    names = filter(is_image_name, _list_file_names(message))
    pictures = [ImportedPicture("", name) for name in names]
    said = DraftMessage(role, "", at, pictures=pictures)
    said.text = "\n\n".join(filter(has_words, [*texts, *_list_attached(message)]))
    yield said


def _list_block_words(block: Any, rest: Remainder) -> list[str]:
    """Return the words of a block, with the addresses that it cites."""
    if not isinstance(block, dict):
        return [*list_words(block)]
    if block.get("type") == "text":
        text = read_string(block.get("text"))
        return [citations.add_sources(text, block.get("citations"))]
    rest.count_kind(block.get("type"))
    return [tool_parts.read_words(block)]


def _read_reply_blocks(
    blocks: list[Any], number: int, rest: Remainder
) -> Iterator[DraftMessage]:
    open_ids: dict[str, None] = {}
    last = ""
    for place, block in enumerate(blocks):
        kind = block.get("type") if isinstance(block, dict) else ""
        if kind == "tool_use":
            own = read_string(block.get("id"))[:100]
            is_new = own and own not in open_ids
            last = own if is_new else f"call-{number}-{place}"
            open_ids[last] = None
            name, value = block.get("name"), block.get("input")
            call = tool_parts.make_call(last, name, value)
            yield DraftMessage("assistant", "", calls=[call])
            said = {key: block[key] for key in block.keys() - {"name", "input"}}
            rest.count_words(said, kind)
        elif kind == "tool_result":
            if not open_ids:
                last = f"call-{number}-{place}"
                open_ids[last] = None
                call = tool_parts.make_call(last, block.get("name"), {})
                yield DraftMessage("assistant", "", calls=[call])
            named = read_string(block.get("tool_use_id"))[:100]
            # Older exports do not say whose result it is.
            asked = named if named in open_ids else last
            said = {key: block[key] for key in block if key != "name"}
            text, failed = tool_parts.read_words(said), block.get("is_error") is True
            yield DraftMessage("tool", text, answers=asked, failed=failed)
        elif kind == "thinking":
            yield DraftMessage("assistant", "", reasoning=tool_parts.read_words(block))
        else:
            words = filter(has_words, _list_block_words(block, rest))
            yield DraftMessage("assistant", "\n\n".join(words))


def _list_attached(message: dict[str, Any]) -> Iterator[str]:
    """Yield the text of each attachment, or the name of a file without one."""
    for each in list_dicts(message.get("attachments")):
        text, name = read_string(each.get("extracted_content")), each.get("file_name")
        if has_words(text):
            yield f"{read_string(name)}:\n\n{text}"
        else:
            yield tool_parts.name_file(name)
    for name in _list_file_names(message):
        if not is_image_name(name):
            yield tool_parts.name_file(name)


def _list_file_names(message: dict[str, Any]) -> list[str]:
    """Each once: newer exports name a file that was read in both lists."""
    read = list_dicts(message.get("attachments"))
    files = list_dicts(message.get("files")) + list_dicts(message.get("files_v2"))
    known = {read_string(each.get("file_name")) for each in read}
    names = dict.fromkeys(read_string(each.get("file_name")) for each in files)
    return [name for name in names if name not in known]
