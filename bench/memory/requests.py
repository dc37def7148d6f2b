"""Reads a summariser request of any of the systems: what is it to summarise?"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import unescape

from langchain_core.messages import BaseMessage

from memory.engine.summaries import material

ROLES = {"human": "User", "ai": "Assistant", "user": "User", "assistant": "Assistant"}
XML_MESSAGE = re.compile(r'<message type="(\w+)">(.*?)</message>', re.DOTALL)
# How LangMem, the LangGraph tutorial, LangChain and Deep Agents quote a summary.
EARLIER = [
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"This is summary of the conversation (?:so far|to date): (.*)\n\nExtend",
        r"Here is a summary of the conversation to date:\n\n(.*)",
        r"You are in the middle of a conversation .*<summary>\n(.*)\n</summary>",
    )
]


@dataclass(frozen=True, slots=True)
class Said:
    """A message, or a part of one; `id` is known where the request tells it."""

    role: str
    text: str
    id: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True)
class Material:
    earlier: list[str]
    messages: list[Said]

    @property
    def texts(self) -> list[str]:
        return [*self.earlier, *(said.text for said in self.messages)]


def read_request(request: Sequence[BaseMessage]) -> Material:
    if (document := material.read_request(request)) is not None:
        return _read_document(document)
    if len(request) == 1 and XML_MESSAGE.search(request[0].text):
        found = XML_MESSAGE.findall(request[0].text)
        return _sort(
            [Said(ROLES.get(kind, kind), unescape(text)) for kind, text in found]
        )
    *messages, instruction = request
    said = [Said(ROLES.get(m.type, m.type), m.text, m.id or "") for m in messages]
    return _sort([*said, Said("User", instruction.text)])


def _read_document(data: material.Document) -> Material:
    earlier = [data.get("previous_summary", "")]
    earlier += [each["text"] for each in data.get("summaries", [])]
    messages = [
        Said(ROLES.get(m["role"], ""), m["text"], str(m["n"]), m.get("part", ""))
        for m in data.get("messages", [])
    ]
    return Material([text for text in earlier if text], messages)


def _sort(said: list[Said]) -> Material:
    """Tell quoted summaries, and the instruction to write one, from what was said."""
    material = Material([], [])
    for each in said:
        found = (pattern.match(each.text) for pattern in EARLIER)
        earlier = next((match.group(1) for match in found if match), "")
        if earlier:
            material.earlier.append(earlier)
        elif each.text != "Create a summary of the conversation above:":
            material.messages.append(each)
    return material
