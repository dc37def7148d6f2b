"""Reads a summariser request of any of the systems: what is it to summarise?"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import unescape

from langchain_core.messages import BaseMessage

OURS = "[windowpane:summarise]"
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
    if request[0].text.startswith(OURS):
        return _read_json(request[-1].text)
    if len(request) == 1 and XML_MESSAGE.search(request[0].text):
        return _sort(_read_xml(request[0].text))
    *messages, instruction = request
    return _sort([*map(_read_message, messages), Said("User", instruction.text)])


def _read_json(text: str) -> Material:
    data = json.loads(text)
    earlier = [data.get("previous_summary", "")]
    earlier += [each["text"] for each in data.get("summaries", [])]
    messages = [
        Said(ROLES.get(m["role"], ""), m["text"], str(m["n"]), m.get("part", ""))
        for m in data.get("messages", [])
    ]
    return Material([text for text in earlier if text], messages)


def _read_xml(text: str) -> Iterator[Said]:
    for kind, content in XML_MESSAGE.findall(text):
        yield Said(ROLES.get(kind, kind), unescape(content))


def _read_message(message: BaseMessage) -> Said:
    return Said(ROLES.get(message.type, message.type), message.text, message.id or "")


def _sort(said: Iterator[Said] | list[Said]) -> Material:
    """Tell quoted summaries, and the instruction to write one, from what was said."""
    material = Material([], [])
    for each in said:
        if text := _earlier_summary(each.text):
            material.earlier.append(text)
        elif each.text != "Create a summary of the conversation above:":
            material.messages.append(each)
    return material


def _earlier_summary(text: str) -> str:
    found = (pattern.match(text) for pattern in EARLIER)
    return next((match.group(1) for match in found if match), "")
