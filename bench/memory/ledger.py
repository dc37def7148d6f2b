"""The ledger of knowledge: messages that a summariser read, and texts that carry them
on.

A message is carried by a summary whose request held it whole, or held a whole summary
that carries it. The number with it: how often the text about it was written.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from html import unescape

from langchain_core.messages import BaseMessage

from memory.engine.summaries.schemas import render_summary

from .models import SummaryRequest
from .requests import Material, Said, read_request


class Ledger:
    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.places: dict[str, list[str]] = defaultdict(list)
        self.parts: dict[str, dict[str, str]] = defaultdict(dict)
        # Newest first.
        self.summaries: list[tuple[str, dict[str, int]]] = []

    def add(self, message: BaseMessage) -> None:
        self.texts[str(message.id)] = message.text
        self.places[message.text].append(str(message.id))

    def read(self, event: SummaryRequest) -> None:
        material = read_request(event.request)
        carried = {
            id_: times + 1 for id_, times in self.carried_by(material.texts).items()
        }
        carried |= dict.fromkeys(self._identify(material), 1)
        self.summaries.insert(0, (_as_quoted(event.text), carried))

    def carried_by(self, texts: Iterable[str]) -> dict[str, int]:
        """The messages behind the summaries quoted whole in these texts."""
        known = "\n".join(texts)
        carried: dict[str, int] = {}
        for summary, messages in self.summaries:
            if summary and summary in known:
                carried = messages | carried
        return carried

    def was_read(self, id_: str) -> bool:
        return "".join(self.parts[id_].values()) == self.texts[id_]

    def _identify(self, material: Material) -> Iterator[str]:
        for said in material.messages:
            if id_ := said.id if said.id in self.texts else self._find(said):
                self.parts[id_][said.part] = said.text
                if said.part or self.was_read(id_):
                    yield id_

    def _find(self, said: Said) -> str:
        """Some requests tell no ids: the first unread message with this text."""
        same = self.places.get(said.text, [])
        unread = (id_ for id_ in same if not self.was_read(id_))
        return next(unread, same[-1] if same else "")


def _as_quoted(summary: str) -> str:
    """The text of a summary: one that was written as data is rendered by the engine."""
    try:
        data = json.loads(summary)
    except ValueError:
        return summary.strip()
    return render_summary(data) if isinstance(data, dict) else summary.strip()


def plain_texts(prompt: Sequence[BaseMessage]) -> list[str]:
    # Some systems escape a summary where they quote it.
    return [text for m in prompt for text in (m.text, unescape(m.text))]
