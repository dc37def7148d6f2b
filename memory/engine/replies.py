"""How a model's reply is read: how it ended, and which part of it is reasoning.

The same for replies to people, summaries and titles.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

# The only reasons that mean "complete", from OpenAI, Anthropic, Ollama, TGI and others.
COMPLETE = {
    *("stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed"),
    *("tool_calls", "tool_use", "function_call"),
}
AT_LIMIT = {
    *("length", "max_tokens", "max_length", "max_output_tokens", "model_length"),
    *("token_limit", "model_context_window_exceeded"),
}
FILTERED = {
    *("content_filter", "content_filtered", "safety", "recitation", "blocklist"),
    *("prohibited_content", "sensitive"),
}
# What LangChain's packages call the reason in a reply's metadata.
REASON_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason")
MAX_REASON = 30
# As much of a provider's word as is kept.
REASON = re.compile(rf"[a-z0-9_]{{1,{MAX_REASON}}}")

# How models without a reasoning parser mark what they think before they answer.
TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[think]": "[/think]",
    "◁think▷": "◁/think▷",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
}
LONGEST_TAG = max(map(len, [*TAGS, *TAGS.values()]))
_OPENINGS = "|".join(map(re.escape, TAGS))
_CLOSINGS = "|".join(map(re.escape, TAGS.values()))
# Some templates put the opening tag into the prompt: then only the closing one comes,
# at the start or the end of a line, or right before the data that was asked for.
_CLOSED_ONLY = re.compile(
    rf"^[ \t]*(?:{_CLOSINGS})|(?:{_CLOSINGS})[ \t]*(?=$|[{{]|```)",
    re.IGNORECASE | re.ASCII | re.MULTILINE,
)
_ANY_OPENING = re.compile(_OPENINGS, re.IGNORECASE | re.ASCII)
_BLOCKS = [
    re.compile(
        rf"^[ \t]*{re.escape(opening)}.*?{re.escape(closing)}",
        re.DOTALL | re.IGNORECASE | re.ASCII | re.MULTILINE,
    )
    for opening, closing in TAGS.items()
]


def why_cut_off(reason: str | None) -> str:
    """Why a reply with this finish reason is not complete; "" if it is.

    "length", "content_filter", "no_finish_reason", or "cut_off:" and the provider's
    word, of which only what is safe to store and show is kept.
    """
    word = (reason or "").strip().lower()
    if word in ("", "null", "none"):
        return "no_finish_reason"
    if word in COMPLETE:
        return ""
    if word in AT_LIMIT:
        return "length"
    if word in FILTERED:
        return "content_filter"
    plain = re.sub(r"[^a-z0-9]+", "_", word)[:MAX_REASON].strip("_")
    return f"cut_off:{plain or 'unknown'}"


def why_metadata_cut_off(metadata: Mapping[str, Any]) -> str:
    """The same for a reply's metadata. A library that gives no reason at all has read
    the whole reply; None means that a stream ended without one."""
    for key in REASON_KEYS:
        if key in metadata:
            value = metadata[key]
            return why_cut_off(value if value is None else str(value))
    return ""


def is_error_report(text: str) -> bool:
    """Whether a reply is a provider's error object that came as text."""
    text = text.strip().removeprefix("```json").strip("`").strip()
    if not text.startswith("{"):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    told = value.get("error") or value.get("errors") or value.get("detail")
    return bool(told) or value.get("object") == "error"


class ReasoningSplitter:
    """Separates the reasoning at the start of a reply from the answer behind it, piece
    by piece. `reasoning` holds what was found so far."""

    def __init__(self) -> None:
        self.reasoning = ""
        self._held = ""
        self._closing: re.Pattern[str] | None = None
        self._was_found = False
        self._is_answer = False

    def feed(self, piece: str) -> str:
        """What of the answer is known with this piece."""
        if self._is_answer:
            return piece
        self._held += piece
        while self._closing or self._open():
            if not self._close():
                return ""
        if not self._is_answer:
            return ""
        held, self._held = self._held, ""
        return held

    def end(self) -> str:
        """What was held back because a tag might have followed."""
        held, self._held = self._held, ""
        if not self._closing:
            return held
        self.reasoning += held
        return ""

    def _open(self) -> bool:
        """Whether reasoning begins here; sets `_is_answer` once it no longer can."""
        start = self._held.lstrip()[:LONGEST_TAG].lower()
        for opening, closing in TAGS.items():
            if start.startswith(opening):
                self._closing = re.compile(re.escape(closing), re.I | re.A)
                self._was_found = True
                self._held = self._held.lstrip()[len(opening) :]
                return True
        self._is_answer = not any(tag.startswith(start) for tag in TAGS)
        if self._is_answer and self._was_found:
            self._held = self._held.lstrip()
        return False

    def _close(self) -> bool:
        """Whether the reasoning ended in what is held."""
        found = self._closing.search(self._held) if self._closing else None
        if not found:
            # Half a tag may stand at the end.
            known = max(0, len(self._held) - LONGEST_TAG)
            self.reasoning += self._held[:known]
            self._held = self._held[known:]
            return False
        self.reasoning += self._held[: found.start()]
        self._held = self._held[found.end() :]
        self._closing = None
        return True


def split_reasoning(text: str) -> tuple[str, str]:
    """A whole reply as its reasoning and its answer."""
    splitter = ReasoningSplitter()
    text = splitter.feed(text) + splitter.end()
    if splitter.reasoning or text.lstrip().startswith(("{", "```")):
        return splitter.reasoning.strip(), text
    # A closing tag without an opening one; data and code are left alone.
    if found := _CLOSED_ONLY.search(text):
        before, answer = text[: found.start()], text[found.end() :].lstrip()
        is_in_code = before.count("```") % 2
        if answer and not is_in_code and not _ANY_OPENING.search(before):
            return before.strip(), answer
    return "", text


def strip_reasoning(text: str) -> str:
    """The answer alone, without reasoning between its lines either."""
    _, answer = split_reasoning(text)
    for block in _BLOCKS:
        answer = block.sub("", answer)
    return answer.strip()
