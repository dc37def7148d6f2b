"""The texts of a request, with the names of their places in the right pane."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

from langchain_core.messages import AIMessage, BaseMessage

from chatsite.features.tools.registry import label_of
from chatsite.pages.presenters.context_pane import TITLES, dump_arguments
from memory.context import RequestContext
from memory.engine.attachments import MARKED
from memory.engine.compose import Section, read_quotations

# Of several places, the first of these is named first; the model's own replies last.
ORDER = (
    *("steps", "newest", "recalled", "pinned", "facts", "rules", "window"),
    *("held", "summaries", "system", "tools"),
)


@dataclass(frozen=True, slots=True)
class SentText:
    """A text of a request, and its place.

    `key`: of its element in the right pane; `first`, `last`: its messages, 0 for none.
    """

    text: str
    kind: str
    key: str
    detail: str = ""
    first: int = 0
    last: int = 0
    is_own: bool = False  # the model has said it before

    @property
    def name(self) -> str:
        return " ".join(filter(None, (str(TITLES[self.kind]), self.detail)))

    @property
    def rank(self) -> int:
        return ORDER.index(self.kind) + len(ORDER) * self.is_own


def list_sources(built: RequestContext) -> Iterator[SentText]:
    """Yield all texts that a model was sent, without the words around quotations."""
    for n, tool in enumerate(built.tools, start=1):
        function = tool.get("function", tool) if isinstance(tool, dict) else {}
        label = label_of(str(function.get("name", "")))
        yield SentText(str(tool), "tools", f"tool-{n}", label)
    if built.read_held:
        held = tuple(built.read_held().messages)
        yield from _list_messages(Section("held", held))
    for section in built.context.sections:
        if section.kind in ("summaries", "pinned", "facts", "rules", "recalled"):
            yield from _list_quotations(section)
        else:
            yield from _list_messages(section)


def _list_quotations(section: Section) -> Iterator[SentText]:
    kind = section.kind
    for quoted in read_quotations("\n".join(m.text for m in section.messages)):
        known, (first, last) = quoted.attributes, quoted.span
        place = f"#{first}" if first else ""
        key = f"part-{kind}" if quoted.tag in ("rule", "fact") else f"seen-{first}"
        if quoted.tag == "summary":
            version = known.get("version", "")
            key, place = f"edit-{version}", f"v{version} (#{first}–#{last})"
        elif quoted.tag == "file":
            start = known.get("characters", "").partition("-")[0]
            key, place = f"passage-{first}-{start}", f"{place} {known.get('name', '')}"
        is_own = quoted.role == "assistant"
        yield SentText(quoted.text, kind, key, place, first, last, is_own)


def _list_messages(section: Section) -> Iterator[SentText]:
    for message in section.messages:
        seq = int(message.id or 0)
        place = f"#{seq}" if seq else ""
        key = f"seen-{seq}" if seq else f"part-{section.kind}"
        is_own = isinstance(message, AIMessage)
        for name, text in _split_files(_read_text(message)):
            detail = f"{place} {name}" if name else place
            yield SentText(text, section.kind, key, detail, seq, seq, is_own)


def _read_text(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return "\n".join((message.text, *map(dump_arguments, calls)))


def _split_files(text: str) -> Iterator[tuple[str, str]]:
    """Yield what was typed, then each attached file with its name."""
    name, at = "", 0
    for found in MARKED.finditer(text):
        yield name, text[at : found.start()]
        name, at = unescape((found["name"] or "  ")[1:-1]), found.end()
    yield name, text[at:]
