"""Parsing of a model's reply: how it ended, and which part of it is reasoning.

The rules are the same for replies to users, summaries and titles.
"""

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from langchain_core.messages import AIMessage

from .blank import is_blank

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
# The part of a provider's word that is kept.
REASON = re.compile(rf"[a-z0-9_]{{1,{MAX_REASON}}}")

# How models without a reasoning parser mark what they think before they answer.
TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[think]": "[/think]",
    "<longcat_think>": "</longcat_think>",
    "◁think▷": "◁/think▷",
    "<|start_thinking|>": "<|end_thinking|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel>thought": "<channel|>",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
}
# A reply with more of them is about the tag itself.
MAX_CLOSINGS = 32
LONGEST_TAG = max(map(len, [*TAGS, *TAGS.values()]))
_OPENINGS = "|".join(map(re.escape, TAGS))
_CLOSINGS = "|".join(map(re.escape, TAGS.values()))
_ANY_OPENING = re.compile(_OPENINGS, re.IGNORECASE | re.ASCII)
_ANY_CLOSING = re.compile(_CLOSINGS, re.IGNORECASE | re.ASCII)
_OPENING_OF_LINE = re.compile(
    rf"^[ \t]*({_OPENINGS})", re.IGNORECASE | re.ASCII | re.MULTILINE
)
# The channels of gpt-oss, from a server that leaves their marks out.
_BARE_CHANNELS = re.compile(r"\A\s*analysis(.*?)assistantfinal", re.DOTALL)
# Inside a line: the end of a sentence before a tag, and a mention of the tag itself.
_SENTENCE_END = re.compile(r"[.!?…。！？)）:：]\s*$")
_MENTION = re.compile(
    r"(?:[\"'“‘「『(（\[<]|(?:\btags?|\btokens?|标签|标记|タグ)\s*)$", re.I
)


def why_cut_off(reason: str | None) -> str:
    """Return why a reply with this finish reason is not complete, or "".

    "length", "content_filter", "no_finish_reason", or "cut_off:" and the provider's
    word, reduced to what is safe to store and show.
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
    """Return why_cut_off() for a reply's metadata.

    A library that gives no reason at all has read the whole reply; None means that a
    stream ended without one.
    """
    for key in REASON_KEYS:
        if key in metadata:
            value = metadata[key]
            return why_cut_off(value if value is None else str(value))
    return ""


def read_whole_text(reply: AIMessage) -> str:
    """Return a reply without its reasoning.

    Return "" if there is none, or if it was cut off or is a provider's error.
    """
    text = strip_reasoning(str(reply.text))
    is_cut_off = why_metadata_cut_off(reply.response_metadata)
    return "" if is_cut_off or is_blank(text) or is_error_report(text) else text


def is_error_report(text: str) -> bool:
    """Return whether a reply is a provider's error object that came as text."""
    text = text.strip().removeprefix("```json").strip("`").strip()
    if not text.startswith("{"):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    fault = value.get("error") or value.get("errors") or value.get("detail")
    return bool(fault) or value.get("object") == "error"


class ReasoningSplitter:
    """A parser that separates reasoning at the start of a reply from its answer.

    It takes the reply piece by piece; `reasoning` holds what was found so far.
    """

    def __init__(self) -> None:
        self.reasoning = ""
        self._held = ""
        self._closing: re.Pattern[str] | None = None
        self._was_found = False
        self._is_answer = False

    def feed(self, piece: str) -> str:
        """Return the part of the answer that is known with this piece."""
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

    def flush_rest(self) -> str:
        """Return the text that was held back because a tag might have followed."""
        held, self._held = self._held, ""
        if not self._closing:
            return held
        self.reasoning += held
        return ""

    def _open(self) -> bool:
        """Return whether reasoning begins here.

        `_is_answer` is set once it no longer can.
        """
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
        """Return whether the reasoning ends in the held text."""
        found = self._closing.search(self._held) if self._closing else None
        if not found:
            # The text may end with half a tag.
            known = max(0, len(self._held) - LONGEST_TAG)
            self.reasoning += self._held[:known]
            self._held = self._held[known:]
            return False
        self.reasoning += self._held[: found.start()]
        self._held = self._held[found.end() :]
        self._closing = None
        return True


def split_reasoning(text: str) -> tuple[str, str]:
    """Split a whole reply into its reasoning and its answer."""
    splitter = ReasoningSplitter()
    text = splitter.feed(text) + splitter.flush_rest()
    return split_rest(splitter.reasoning, text)


def split_rest(reasoning: str, text: str) -> tuple[str, str]:
    """Move reasoning that only the end of a reply reveals out of the answer.

    It stands between the lines of the answer, or has only a closing tag. Data and code
    are left alone.
    """
    if not text.lstrip().startswith(("{", "```")):
        found, text = _split_blocks(text)
        reasoning = f"{reasoning.strip()}\n\n{found}" if found else reasoning
        if bare := _BARE_CHANNELS.match(text):
            return (reasoning or bare[1]).strip(), text[bare.end() :].lstrip()
        closing = _find_closing(text)
        if closing and not (reasoning and text[: closing.start()].strip()):
            # Some templates put the opening tag into the prompt.
            reasoning = reasoning or text[: closing.start()]
            text = text[closing.end() :].lstrip()
    return reasoning.strip(), text


def _split_blocks(text: str) -> tuple[str, str]:
    """Split the text into reasoning at the start of a line, and the rest."""
    thoughts: list[str] = []
    kept: list[str] = []
    unclosed: set[str] = set()
    end = seen = fences = 0
    for opening in _OPENING_OF_LINE.finditer(text):
        fences += text.count("```", seen, max(seen, opening.start()))
        seen, tag = max(seen, opening.start()), opening[1].lower()
        if opening.start() < end or fences % 2 or tag in unclosed:
            continue
        closing = re.compile(re.escape(TAGS[tag]), re.I | re.A)
        if found := closing.search(text, opening.end()):
            thoughts.append(text[opening.end() : found.start()].strip())
            kept.append(text[end : opening.start()])
            end = seen = found.end()
        else:
            unclosed.add(tag)
    return "\n\n".join(thoughts), "".join(kept) + text[end:]


def _find_closing(text: str) -> re.Match[str] | None:
    """Return the closing tag of reasoning without an opening tag."""
    opening = _ANY_OPENING.search(text)
    end = opening.start() if opening else len(text)
    found = islice(_ANY_CLOSING.finditer(text, 0, end), MAX_CLOSINGS)
    return next((tag for tag in found if _ends_reasoning(text, tag)), None)


def _ends_reasoning(text: str, tag: re.Match[str]) -> bool:
    start = text.rfind("\n", 0, tag.start()) + 1
    before, after = text[start : tag.start()], text[tag.end() :].split("\n", 1)[0]
    is_code = text.count("```", 0, tag.start()) % 2 or before.count("`") % 2
    if is_code or not text[tag.end() :].strip():
        return False
    if (
        not before.strip()
        or not after.strip()
        or after.lstrip(" ").startswith(("{", "["))
    ):
        return True
    if _MENTION.search(before):
        return False
    is_apart = before[-1].isspace() and not _SENTENCE_END.search(before)
    return not is_apart or not after.lstrip()[0].islower()


def strip_reasoning(text: str) -> str:
    """Return the answer alone."""
    return split_reasoning(text)[1].strip()
