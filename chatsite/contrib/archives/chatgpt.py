"""The exports of ChatGPT, read leniently.

Only the branch of a conversation that was open is imported.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from django.utils.translation import gettext as _

from chatsite.features.importing.exporting.as_markdown import fence_code
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
    HIDDEN,
    Remainder,
    list_words,
)

from . import citations, memories, tool_parts
from .foreign import make_source, open_nodes
from .tool_parts import as_list, find_pointer, list_dicts, read_string

ROLES = ("user", "assistant", "tool")
THOUGHTS = ("thoughts", "reasoning_recap")
# Forms of messages whose words are read as they were shown.
KNOWN = frozenset(
    {
        *("text", "multimodal_text", "code", "execution_output", "system_error"),
        *("tether_quote", "tether_browsing_display", "sonic_webpage", *THOUGHTS),
        *("computer_output", "citable_code_output"),
    }
)


def read_chatgpt(item: dict[str, Any]) -> Draft:
    if "mapping" not in item:
        return memories.read_chatgpt_memories(item)
    site = SITES["chatgpt"]
    messages, others = open_nodes(item, site)
    rest = Remainder()
    rest.count_words([[_content_of(m), _name_attached(m)] for m in others], BRANCH)
    talk = _move_pictures(_read_talk(messages, rest))
    key = item.get("conversation_id") or item.get("id") or item.get("create_time")
    source = make_source("chatgpt", key)
    return from_talk(source, read_string(item.get("title")), talk, site, rest)


def _content_of(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    return content if isinstance(content, dict) else {"parts": [content]}


def _read_thoughts(content: dict[str, Any]) -> str:
    """Return the text of the thoughts.

    Each thought has its text as a whole and, sometimes, in pieces.
    """
    thoughts = []
    for each in as_list(content.get("thoughts")):
        pieces = [*list_words(each.get("chunks"))] if isinstance(each, dict) else []
        is_same = pieces and "".join(pieces) == read_string(each.get("content"))
        thoughts.append({**each, "chunks": []} if is_same else each)
    return tool_parts.read_words({**content, "thoughts": thoughts})


def _read_talk(messages: list[Any], rest: Remainder) -> Iterator[DraftMessage]:
    """Yield the messages with calls of tools.

    Calls are messages to another recipient, and the tool's messages behind one are its
    result.
    """
    asked = ""
    for number, message in enumerate(messages):
        author, content = message.get("author"), _content_of(message)
        author = author if isinstance(author, dict) else {}
        role = read_string(author.get("role"))
        kind = read_string(content.get("content_type"))
        if role not in ROLES or _is_hidden(message):
            rest.count_words(content, kind if kind not in ("", "text") else HIDDEN)
            continue
        if kind and kind not in KNOWN:
            rest.count_kind(kind)
        at, to = read_time(message.get("create_time")), message.get("recipient")
        model = read_string(_read_metadata(message, "model_slug"))[:60]
        said = DraftMessage(role, "", at, model=model)
        if role == "tool":
            if not asked:
                asked, name = f"call-{number}", author.get("name")
                call = tool_parts.make_call(asked, name, {})
                yield DraftMessage("assistant", "", at, calls=[call])
            said.pictures = [*_list_pictures(message, content)]
            place = _("[images: see the reply]") if said.pictures else ""
            words = tool_parts.read_words(content)
            said.text = "\n\n".join(filter(None, [words, place]))
            said.answers = asked
        elif role == "assistant" and isinstance(to, str) and to not in ("", "all"):
            asked, value = f"call-{number}", tool_parts.read_arguments(content)
            said.calls = [tool_parts.make_call(asked, to, value)]
        elif kind in THOUGHTS:
            said.reasoning = _read_thoughts(content)
        else:
            asked, said.text = "", _read_shown(message, content, role)
            said.pictures = [*_list_pictures(message, content)]
        yield said


def _read_metadata(message: dict[str, Any], name: str) -> Any:
    metadata = message.get("metadata")
    return metadata.get(name) if isinstance(metadata, dict) else None


def _is_hidden(message: dict[str, Any]) -> bool:
    """Return whether the message was never shown."""
    return bool(_read_metadata(message, "is_visually_hidden_from_conversation"))


def _read_shown(message: dict[str, Any], content: dict[str, Any], role: str) -> str:
    """Return the words with their references and the names of attached files."""
    text = tool_parts.read_words(content)
    if text and content.get("content_type") == "code":
        language = tool_parts.name_language(content.get("language"))
        text = fence_code(text, language)
    if role == "assistant":
        references = _read_metadata(message, "content_references")
        text = citations.draw_citations(text, references)
        cited = [references, _read_metadata(message, "citations")]
        text = citations.add_sources(text, cited)
    names = map(tool_parts.name_file, _name_attached(message))
    return "\n\n".join(filter(None, [text, *names]))


def _name_attached(message: dict[str, Any]) -> list[Any]:
    """Return the names of attached files that are not images."""
    files = list_dicts(_read_metadata(message, "attachments"))
    return [each.get("name") for each in files if not _is_picture(each)]


def _list_pictures(
    message: dict[str, Any], content: dict[str, Any]
) -> Iterator[ImportedPicture]:
    """Yield the images of a message.

    They are among its parts, plotted by a program, shown by a screen, or only named
    beside them.
    """
    attached = list_dicts(_read_metadata(message, "attachments"))
    beside = {read_string(each.get("id")): each for each in attached}
    result = _read_metadata(message, "aggregate_result")
    plots = as_list(result.get("messages")) if isinstance(result, dict) else []
    shown = [*as_list(content.get("parts")), content.get("screenshot"), *plots]
    files = (file for file, each in beside.items() if file and _is_picture(each))
    for file in dict.fromkeys([*filter(None, map(find_pointer, shown)), *files]):
        yield ImportedPicture(file, read_string(beside.get(file, {}).get("name")))


def _is_picture(file: dict[str, Any]) -> bool:
    kind = read_string(file.get("mime_type") or file.get("mimeType"))
    return kind.startswith("image/")


def _move_pictures(talk: Iterable[DraftMessage]) -> Iterator[DraftMessage]:
    """Move images that a tool has made to the reply that showed them."""
    made = DraftMessage("assistant", "")
    for each in talk:
        if each.role == "tool":
            made.at, made.model = each.at, each.model
            made.pictures += each.pictures
            each.pictures = []
        elif made.pictures and each.role == "user":
            yield made
            made = DraftMessage("assistant", "")
        elif not each.calls:
            each.pictures = [*made.pictures, *each.pictures]
            made = DraftMessage("assistant", "")
        yield each
    if made.pictures:
        yield made
