"""The report of a provider beside a reply.

It has the tokens of each iteration, the reason of a cache miss, and the provider's
summaries. Besides the summaries, only numbers and known codes are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

MAX_ITERATIONS = 100
# Counts of tokens that are written to a cache for long.
LONG_OF_ANTHROPIC, LONG_OF_OPENAI = "ephemeral_1h_input_tokens", "ttl_12h_tokens"
COMPACTION = "compaction"
# Iterations that the provider does not add to the counts of the reply.
APART = (COMPACTION, "advisor_message")
FALLBACK = "fallback_message"
KINDS = ("message", FALLBACK, *APART)
CHANGED = ("model", "system", "tools", "messages")
# The provider can't tell, or compares with a reply that it does not know.
UNKNOWN = ("unavailable", "previous_message_not_found", "pending")
# Reasons of OpenAI's diagnostics, in Anthropic's words.
OF_OPENAI = {
    **{f"{name}_changed": f"{name}_changed" for name in ("model", "tools")},
    **dict.fromkeys(("input_changed", "context_compacted"), "messages_changed"),
    "comparison_response_not_found": "previous_message_not_found",
}
REASONS = (*(f"{name}_changed" for name in CHANGED), *UNKNOWN)


class TokenUse(NamedTuple):
    """The tokens of one iteration; `read` includes those from and for the cache."""

    kind: str
    read: int
    cached: int
    output: int

    @classmethod
    def from_anthropic(cls, usage: Mapping[str, Any], kind: str) -> Self:
        cached = read_count(usage, "cache_read_input_tokens")
        written = read_count(usage, "cache_creation_input_tokens")
        read = read_count(usage, "input_tokens") + cached + written
        return cls(kind, read, cached, read_count(usage, "output_tokens"))


@dataclass(slots=True)
class ProviderReport:
    """The report of one reply; empty where the provider reported nothing."""

    iterations: list[TokenUse] = field(default_factory=list)
    # The tokens of the reply as the provider counts them.
    stated: TokenUse | None = None
    # The tokens that were written to the cache, and of these for an hour or more.
    kept: int = 0
    kept_long: int = 0
    # A code of REASONS, and the tokens that the cache could have given.
    miss: tuple[str, int] | None = None
    # Estimated tokens of the reply that only the provider can read.
    hidden: int = 0
    # The blocks or items of its own summaries, as they were sent.
    summaries: list[dict[str, Any]] = field(default_factory=list)

    @property
    def total(self) -> TokenUse | None:
        """The tokens of the bill: all iterations, or else the counts of the reply."""
        if not self.iterations:
            return self.stated
        counts = zip(*(each[1:] for each in self.iterations), strict=True)
        return TokenUse("", *map(sum, counts))

    @property
    def made(self) -> list[dict[str, Any]]:
        """The summaries that say anything; the provider sends failed ones, too."""
        said = ("content", "encrypted_content")
        return [each for each in self.summaries if any(map(each.get, said))]

    def list_kept(self, long_factor: float) -> tuple[float, ...]:
        """Return what was written to the cache, as a TurnResult takes it."""
        return (self.kept, self.kept_long, long_factor) if self.kept else ()

    @property
    def compaction_tokens(self) -> int | None:
        """The tokens of the summaries, if the provider counts them apart."""
        written = [each.output for each in self.iterations if each.kind == COMPACTION]
        return sum(written) if written else None

    def read_anthropic(self, usage: Mapping[str, Any]) -> None:
        """Read the usage of a message."""
        self.stated = TokenUse.from_anthropic(usage, "")
        given = usage.get("iterations")
        found = given[:MAX_ITERATIONS] if isinstance(given, list) else []
        self.iterations = [
            TokenUse.from_anthropic(each, kind)
            for each in found
            if isinstance(each, dict) and (kind := each.get("type")) in KINDS
        ]
        rounds = [each for each in found if isinstance(each, dict)] or [usage]
        name, parts = "cache_creation_input_tokens", "cache_creation"
        sizes = [_count_kept(each, name, parts, LONG_OF_ANTHROPIC) for each in rounds]
        self.kept, self.kept_long = map(sum, zip(*sizes, strict=True))

    def read_openai(self, details: Mapping[str, Any]) -> None:
        """Read what was written to the cache, from the details of the input."""
        name, parts = "cache_write_tokens", "cache_write_tokens_details"
        self.kept, self.kept_long = _count_kept(details, name, parts, LONG_OF_OPENAI)

    def read_miss(self, diagnostics: object) -> None:
        """Read why the cache could not be used, from either API."""
        if not isinstance(diagnostics, dict):
            return
        if "cache_miss_reason" in diagnostics:
            # Without a reason, the comparison had not ended.
            found = diagnostics["cache_miss_reason"] or {"type": "pending"}
            code, name = found.get("type"), "cache_missed_input_tokens"
        elif diagnostics.get("type") != "cache_hit":
            found, name = diagnostics, "cache_missed_tokens"
            code = found.get("reason") or found.get("type")
            code = OF_OPENAI.get(code, "unavailable")
        else:
            return
        code = code if code in REASONS else "unavailable"
        self.miss = code, read_count(found, name)

    def to_json(self) -> dict[str, Any]:
        """Return what is stored with the request: numbers and codes."""
        values: dict[str, Any] = {"miss": self.miss and [*self.miss]}
        values["hidden"] = self.hidden
        if self.iterations:
            values["iterations"] = [[*each] for each in self.iterations]
            values["stated"] = self.stated and [*self.stated]
        return {name: value for name, value in values.items() if value}


def _count_kept(
    usage: Mapping[str, Any], name: str, parts_name: str, long_name: str
) -> tuple[int, int]:
    """Return the tokens written to the cache, and of these for an hour or more."""
    kept, parts = read_count(usage, name), usage.get(parts_name)
    long = read_count(parts, long_name) if isinstance(parts, dict) else 0
    return kept, min(long, kept)


def find_mismatch(report: Mapping[str, Any]) -> tuple[TokenUse, TokenUse] | None:
    """Return the sum of a stored report's iterations and the counts of the reply.

    Return None where they agree, and where another model answered in place of the
    first: providers do not say which of the two the counts are of.
    """
    rows = [TokenUse(*each) for each in report.get("iterations", ())]
    if not rows or any(each.kind == FALLBACK for each in rows):
        return None
    own = [each for each in rows if each.kind not in APART]
    stated = TokenUse(*report["stated"])
    summed = TokenUse("", *(sum(each[at] for each in own) for at in (1, 2, 3)))
    return None if summed == stated else (summed, stated)


def read_count(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value <= MAX_TOKENS else 0


MAX_TOKENS = 10_000_000
