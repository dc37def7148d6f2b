"""The words of diagrams and charts in a document, and counts of its pictures and files.

It knows no Django: it runs in the program of document_text.py.
"""

from collections.abc import Callable

from .parts import Parts, Text, parse_into

# Kinds of relations to what has no text here, as people know it.
LEFT_OUT = {
    **{"image": "picture", "chartEx": "chart", "oleObject": "file", "package": "file"},
    **{"aFChunk": "file", "video": "recording", "audio": "recording"},
}


def read_drawn(
    parts: Parts,
    path: str,
    text: Text,
    read_words: Callable[[Parts, str, Text], object],
) -> None:
    """Read the diagrams and charts of a part, and count its pictures and files."""
    for kind, target in dict.fromkeys(parts.read_relations(path).values()):
        if kind == "chart" and target in parts:
            text.begin_part("Chart")
            parse_into(ChartText(text), parts.read(target))
        elif kind == "diagramData" and target in parts:
            text.begin_part("Diagram")
            read_words(parts, target, text)
        elif kind in LEFT_OUT:
            text.leave_out(LEFT_OUT[kind], target)


class ChartText:
    """The title of a chart, and its series: a line each of a name and its values."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._path: list[str] = []
        self._said: list[str] = []
        self._series: dict[str, list[str]] = {}

    def start_element(self, tag: str, _: dict[str, str]) -> None:
        self._path.append(tag)
        if tag == "ser":
            self._series = {"tx": [], "cat": [], "val": []}

    def add_characters(self, said: str) -> None:
        if self._path[-1] in ("v", "t"):
            self._said.append(said)

    def end_element(self, tag: str) -> None:
        self._path.pop()
        if tag in ("v", "t") and (said := "".join(self._said)):
            self._said.clear()
            self._take(said)
        elif tag in ("title", "p") and "ser" not in self._path:
            self._text.end_line()
        elif tag == "ser":
            self._write_series()

    def _take(self, said: str) -> None:
        if "ser" not in self._path:
            self._text.add_text(said)
            return
        # The horizontal and the vertical values of points are named otherwise.
        names = {"xVal": "cat", "yVal": "val"}
        for tag in reversed(self._path):
            if (name := names.get(tag, tag)) in self._series:
                self._series[name].append(said)
                return

    def _write_series(self) -> None:
        name, where, values = (self._series[key] for key in ("tx", "cat", "val"))
        where += [""] * (len(values) - len(where))
        pairs = (
            f"{at} {value}".strip() for at, value in zip(where, values, strict=False)
        )
        self._text.end_line()
        self._text.add_text(f"{' '.join(name) or '-'}: {'; '.join(pairs)}\n")
