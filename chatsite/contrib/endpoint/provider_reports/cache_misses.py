"""The reasons of cache misses: the provider's, and those that this site finds.

The site compares the bodies of two requests, without cache marks, in the order in which
the providers name their reasons.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.utils.translation import gettext_lazy as _

from chatsite.contrib.endpoint.apis import find_api_by_name
from chatsite.contrib.endpoint.models import ClientRequest
from chatsite.contrib.endpoint.store.rebuilding import KEY, read_sent_body
from memory.models import ModelCall

# Other fields that change what the model reads.
SETTINGS = (
    *("thinking", "tool_choice", "output_config", "output_format", "reasoning"),
    *("reasoning_effort", "text", "response_format", "verbosity", "service_tier"),
    *("prompt_cache_key", "parallel_tool_calls"),
)
# Fields with JSON that the model reads as it is written.
WRITTEN = frozenset({"input_schema", "parameters", "input"})
MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})
# What this site finds, as the reason that a provider gives for it.
REASONS = {
    **{name: f"{name}_changed" for name in ("model", "system", "tools", "messages")},
    # The providers do not say which other field it is.
    "settings": "unavailable",
}
WORDS = {
    "model_changed": _("another model, or another speed"),
    "system_changed": _("the instructions have changed"),
    "tools_changed": _("the list of tools has changed"),
    "messages_changed": _("earlier messages have changed"),
    "unavailable": _("no reason: perhaps other settings, such as those of thinking"),
    "previous_message_not_found": _("it does not know the reply to compare with"),
    "pending": _("it was still comparing"),
    "": _("nothing that was sent before has changed"),
    "settings": _("other settings, such as those of thinking or the choice of tools"),
}

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CacheMiss:
    """The causes that the provider and this site name for one request.

    `said` is None where the provider was not asked, and `found` where there is no
    request to compare with; both are "" for no cause. `all_found` has every
    difference, the first one first.
    """

    said: str | None
    tokens: int
    found: str | None
    all_found: tuple[str, ...] = ()

    @property
    def said_words(self) -> str:
        return str(WORDS[self.said or ""])

    @property
    def found_words(self) -> str:
        return _name_difference(self.found or "")

    @property
    def other_words(self) -> list[str]:
        return [*map(_name_difference, self.all_found[1:])]

    @property
    def is_disputed(self) -> bool:
        """True if both reasons are known and differ."""
        if self.said in (None, "pending", "previous_message_not_found"):
            return False
        return self.found is not None and REASONS.get(self.found, "") != self.said


def _name_difference(name: str) -> str:
    return str(WORDS[name if name == "settings" else REASONS.get(name, "")])


def find_differences(api: str, before: Body, body: Body) -> list[str]:
    """Return what differs between two bodies of an API, the first cause first."""
    list_sent = find_api_by_name(api).list_sent
    one, other = _strip(before), _strip(body)

    def differs(*names: str) -> bool:
        return any(one.get(name) != other.get(name) for name in names)

    known, said = (_normalize(list_sent(each)) for each in (one, other))
    found = {
        "model": differs("model", "speed"),
        "system": differs("system", "instructions"),
        "tools": differs("tools"),
        "messages": [*islice(said, len(known))] != known,
        "settings": differs(*SETTINGS),
    }
    return [name for name, is_other in found.items() if is_other]


def _normalize(messages: Sequence[Any]) -> list[Any]:
    """Return the messages with each text as a list of one."""
    made = []
    for each in messages:
        if isinstance(each, dict) and isinstance(text := each.get("content"), str):
            each = {**each, "content": [{"type": "text", "text": text}]}
        made.append(each)
    return made


def _strip(value: Any) -> Any:
    """Return a value without marks of the cache and fields without a value.

    The order of names counts where the model reads them in it.
    """
    if isinstance(value, dict):
        kept = {n: v for n, v in value.items() if n not in MARKS and v is not None}
        return {
            n: json.dumps(v) if n in WRITTEN and isinstance(v, dict) else _strip(v)
            for n, v in kept.items()
        }
    return [*map(_strip, value)] if isinstance(value, list) else value


def find_cache_miss(call: ModelCall) -> CacheMiss | None:
    """Return why a request missed the cache; None: no miss was reported."""
    said, tokens = call.of_client.report.get("miss") or (None, 0)
    body = read_sent_body(call)
    name = _name_compared(body)
    if name and said is None and not call.error:
        said = ""
    before = _find_compared(call, name)
    earlier = read_sent_body(before) if before else {}
    api = call.refs[KEY]["wire"]
    if not body or not earlier or before.refs[KEY]["wire"] != api:
        return CacheMiss(said, tokens, None) if said else None
    found = find_differences(api, earlier, body)
    # Not every setting matters to a cache: only where the provider names one.
    is_certain = bool(found) and found[0] != "settings"
    if not said and not is_certain:
        return None
    return CacheMiss(said, tokens, found[0] if found else "", tuple(found))


def _name_compared(body: Body) -> str:
    """Return the id of the reply whose request the provider compares with, or ""."""
    named = body.get("diagnostics") or body.get("prompt_cache_options") or {}
    name = named.get("previous_message_id") or named.get("comparison_response_id")
    return name if isinstance(name, str) else ""


def _find_compared(call: ModelCall, name: str) -> ModelCall | None:
    """Return the request that the provider compares with, or the one before."""
    rows = ModelCall.objects.filter(of_client__isnull=False, refs__has_key=KEY)
    rows = rows.filter(pk__lt=call.pk).order_by("-pk")
    if not name:
        return rows.filter(conversation=call.conversation_id).first()
    mine = ClientRequest.objects.filter(
        owner_id=call.conversation.owner_id, response_id=name
    )
    return rows.filter(pk__in=mine.exclude(response_id="").values("pk")).first()
