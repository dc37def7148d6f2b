"""An export without anybody's words: in their place null, with length and hash, so that
a copy can be compared without being read. The numbers stay.
"""

import hashlib
import json
from typing import Any

from django.utils.translation import gettext as _

from .. import redaction

Values = dict[str, Any]

OF_CONVERSATION = ("title", "system_prompt", "own_policy")
OF_POLICY = (
    *("important", "initial_prompt", "extend_prompt", "merge_prompt", "final_prompt"),
)
OF_MESSAGE = (
    *("text", "reasoning", "tool_calls", "tool_call_id", "client_id", "error"),
)
OF_SUMMARY = ("text", "structured", "flags", "error")
OF_CALL = ("error",)
# An import may have brought more of them, with whatever in it.
REFS = (
    *("system", "fence", "summaries", "pinned", "window", "left_out", "recalled"),
    *("excerpts", "newest", "messages"),
)


def hide(value: Values) -> Values:
    """What chat.export.whole() gave, masked."""
    conversation = _hide(value["conversation"], OF_CONVERSATION)
    policy = _hide(conversation["policy"], OF_POLICY)
    prompts = value["prompts"]
    return value | {
        "conversation": conversation | {"policy": policy},
        "messages": [_hide(row, OF_MESSAGE) for row in value["messages"]],
        "summaries": [_hide(row, OF_SUMMARY) for row in value["summaries"]],
        "model_calls": [_hide_refs(row) for row in value["model_calls"]],
        "prompts": dict.fromkeys(prompts),
        "prompts_length": {sha256: len(text) for sha256, text in prompts.items()},
    }


def hide_words(text: str) -> str:
    """For a text to read: how long it is, and its hash."""
    if not text:
        return ""
    redaction = _("hidden, %(count)s characters") % {"count": len(text)}
    return f"[{redaction}, sha256 {_sha256(text)}]"


def _hide(row: Values, names: tuple[str, ...]) -> Values:
    shown = dict(row)
    for name in names:
        if (value := row.get(name)) and not _is_code(name, value):
            text = value if isinstance(value, str) else _as_json(value)
            hidden = {f"{name}_length": len(text), f"{name}_sha256": _sha256(text)}
            shown |= {name: None, **hidden}
    return shown


def _hide_refs(row: Values) -> Values:
    refs = row["refs"] if isinstance(row["refs"], dict) else {}
    known = {name: refs[name] for name in REFS if name in refs}
    return _hide(row, OF_CALL) | {"refs": known}


def _is_code(name: str, value: object) -> bool:
    """Errors are codes of the site, unless an import has brought its own."""
    return name == "error" and value in redaction.ERROR_CODES


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
