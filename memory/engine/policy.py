"""The values of a policy: parsed, validated, and rejected with the setting's name.

A trigger is an OR of ANDs of conditions such as ("tokens", 4000); a keep is one such
size.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    ValidationError,
    model_validator,
)

from .compose import SLOT
from .exceptions import PolicyError
from .important_patterns import MAX_PATTERN_CHARS, parse_pattern
from .wording import gettext_noop as _
from .wording import shorten_value

ContextSize = tuple[str, int | float]
# Any one of the clauses fires the trigger; all conditions of a clause have to hold.
Clause = tuple[ContextSize, ...]
Trigger = tuple[Clause, ...]

KEEP_KINDS = ("tokens", "messages", "turns", "fraction")
TRIGGER_KINDS = (*KEEP_KINDS, "age", "idle", "topic", "important")
# Kinds that are a share of something, and those that are seconds.
SHARES, TIMES = ("fraction", "topic"), ("age", "idle")
# More than any model or conversation has, and well within the range of a database.
MAX_SIZE = 10_000_000
# Ten years.
MAX_SECONDS = 315_360_000
MAX_PROMPT_CHARS = 8000
MAX_FOCUS_CHARS = 500
# Enough to read in one request what leaves the largest window of an adaptive policy.
CHUNK_TOKENS = 12_000
LEAST_CHUNK = 500
MAX_PATTERNS = 20


def parse_context_size(value: object, kinds: tuple[str, ...]) -> ContextSize:
    if not _is_pair(value):
        raise _policy_error(
            _("%(value)s: expected a pair such as ('tokens', 4000)"), value
        )
    kind, amount = value
    if kind not in kinds:
        expected = ", ".join(kinds)
        raise _policy_error(
            _("%(value)s: expected one of %(kinds)s"), kind, kinds=expected
        )
    if kind in SHARES:
        # bool is an int, and NaN fails every comparison.
        if type(amount) not in (int, float) or not 0 < amount <= 1:
            template = _("%(kind)s %(value)s: expected a number above 0 and up to 1")
            raise _policy_error(template, amount, kind=kind)
        return kind, float(amount)
    limit = MAX_SECONDS if kind in TIMES else MAX_SIZE
    if type(amount) is not int or not 1 <= amount <= limit:
        raise _policy_error(
            _("%(value)s %(kind)s: expected a whole number from 1 to %(limit)s"),
            amount,
            kind=kind,
            limit=f"{limit:,}",
        )
    return kind, amount


def parse_keep(value: object) -> ContextSize:
    return parse_context_size(value, KEEP_KINDS)


def parse_policy_trigger(value: object) -> Trigger:
    if value is None:
        return ()
    if isinstance(value, dict) or _is_pair(value):
        return (_parse_clause(value),)
    if not isinstance(value, (list, tuple)):
        raise _policy_error(
            _("%(value)s: expected a pair, a dict, a list or None"), value
        )
    return tuple(map(_parse_clause, value))


def _parse_clause(value: object) -> Clause:
    conditions: Iterable[object] = ()
    if isinstance(value, dict):
        conditions = value.items()
    elif _is_pair(value):
        conditions = [value]
    elif isinstance(value, (list, tuple)):
        conditions = value
    clause = tuple(
        parse_context_size(condition, TRIGGER_KINDS) for condition in conditions
    )
    if not clause:
        raise _policy_error(_("%(value)s: expected at least one condition"), value)
    if len(dict(clause)) < len(clause):
        raise _policy_error(_("%(value)s: expected each kind once"), value)
    return clause


def parse_important(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or len(value) > MAX_PATTERNS:
        raise _policy_error(
            _("%(value)s: expected a list of up to %(limit)s regular expressions"),
            value,
            limit=MAX_PATTERNS,
        )
    for pattern in value:
        if not isinstance(pattern, str) or not 1 <= len(pattern) <= MAX_PATTERN_CHARS:
            raise _policy_error(
                _(
                    "%(value)s: expected a regular expression of up to %(limit)s "
                    "characters"
                ),
                pattern,
                limit=MAX_PATTERN_CHARS,
            )
    return tuple(map(parse_pattern, value))


def parse_prompt(value: object, most: int = MAX_PROMPT_CHARS) -> str:
    if not isinstance(value, str) or len(value) > most:
        raise _policy_error(
            _("%(value)s: expected a text of up to %(limit)s characters"),
            value,
            limit=f"{most:,}",
        )
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise _policy_error(
            _("%(value)s: expected a text without NUL and surrogates"), value
        )
    return value.strip()


def parse_focus(value: object) -> str:
    return parse_prompt(value, MAX_FOCUS_CHARS)


def parse_final_prompt(value: object) -> str:
    """Parse the prompt; reject a `{blocks}` inside another one.

    It would still be there after compose.py has removed one.
    """
    text = parse_prompt(value)
    if SLOT in text.replace(SLOT, ""):
        template = _("%(value)s: expected a text without %(slot)s inside of another")
        raise _policy_error(template, value, slot=SLOT)
    return text


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and isinstance(value[0], str)
    )


def _policy_error(template: str, value: object, **values: object) -> PolicyError:
    return PolicyError(template, value=shorten_value(value), **values)


PROFILES = ("general", "customer_service", "tutoring", "project")


def parse_profile(value: object) -> str | type[BaseModel]:
    if isinstance(value, type) and issubclass(value, BaseModel):
        # Raises pydantic's own error for a class that has none.
        value.model_json_schema()
    elif value not in PROFILES:
        expected = ", ".join(PROFILES)
        raise _policy_error(
            _("%(value)s: expected one of %(kinds)s"), value, kinds=expected
        )
    return value


Strategy = Literal["running", "layered", "topics", "window"]

DEFAULT_PRESET = "layered"
PRESETS: dict[str, dict[str, Any]] = {
    "layered": {
        "strategy": "layered",
        "trigger": ("tokens", 4000),
        "keep": ("tokens", 1000),
        "adaptive": True,
    },
    "langgraph": {
        "strategy": "running",
        "trigger": ("messages", 7),
        "keep": ("messages", 2),
    },
    "langmem": {
        "strategy": "running",
        "trigger": ("tokens", 4000),
        "keep": ("tokens", 3744),
        "fold_least": 4000,
        "max_summary_tokens": 256,
    },
    "langchain": {
        "strategy": "running",
        "trigger": [("tokens", 4000), ("messages", 50)],
        "keep": ("messages", 20),
    },
    "deepagents": {
        "strategy": "running",
        "trigger": ("fraction", 0.85),
        "keep": ("fraction", 0.10),
        "truncate_tool_args": 2000,
    },
    "guide": {"strategy": "running", "trigger": ("turns", 11), "keep": ("turns", 10)},
    "topics": {
        "strategy": "topics",
        "trigger": ("tokens", 4000),
        "keep": ("tokens", 1000),
        "max_summary_tokens": 800,
    },
}
# Settings of a preset that apply only to its own numbers.
OF_NUMBERS = ("fold_least", "adaptive")
LABELS = {
    "layered": _("Layered (recommended): summarises older messages in steps"),
    "langgraph": _("LangGraph tutorial: more than 6 messages, keep 2"),
    "langmem": _("LangMem: summarise the first 4,000 tokens, keep the rest"),
    "langchain": _(
        "LangChain: summarise at 50 messages or 4,000 tokens, keep 20 messages"
    ),
    # xgettext:no-python-format
    "deepagents": _("Deep Agents: summarise at 85 % of the model's window, keep 10 %"),
    "guide": _("Sliding window: keep 10 turns, summarise what leaves them"),
    "topics": _(
        "Topics: summarise at 4,000 tokens into one summary with a part per topic"
    ),
}

# The presets that other libraries have.
COMPARED = ("langgraph", "langmem", "langchain", "deepagents")
COMPARED_LABEL = _("Others (for comparison)")

RULES = {
    "offer": _("Ask me at the message"),
    "keep": _("Keep them without asking"),
    "off": _("Don't detect"),
}

FACTS = {
    "off": _("Neither use nor learn"),
    "use": _("Use them, don't learn new ones"),
    "learn": _("Don't use them, offer new ones"),
    "on": _("Use them, and offer new ones"),
}

# The range of an adaptive policy's trigger.
ADAPTIVE_MIN, ADAPTIVE_MAX = 4000, 10_000
# Price of a token read from the provider's cache over that of a fresh one.
CACHED_PRICE = 0.1


def list_choices(
    labels: Mapping[str, str], translate: Callable[[str], str] = str
) -> list[tuple[str, str]]:
    """Return LABELS, RULES or FACTS as the choices of a form field."""
    return [(name, translate(label)) for name, label in labels.items()]


def list_presets(translate: Callable[[str], str] = str) -> list[tuple[str, Any]]:
    """Return the presets as choices of a form field, those of others as a group."""
    choices = list_choices(LABELS, translate)
    others = [each for each in choices if each[0] in COMPARED]
    own = [each for each in choices if each[0] not in COMPARED]
    return [*own, (translate(COMPARED_LABEL), others)]


Prompt = Annotated[str, BeforeValidator(parse_prompt)]
FinalPrompt = Annotated[str, BeforeValidator(parse_final_prompt)]


class Policy(BaseModel):
    """The summary settings of a conversation; the preset has the missing values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    preset: str = DEFAULT_PRESET
    enabled: StrictBool = True
    # "window": messages that leave the window are not summarised; search still finds
    # them.
    strategy: Strategy = Field(default=...)
    trigger: Annotated[Any, BeforeValidator(parse_policy_trigger)] = Field(default=...)
    keep: Annotated[Any, BeforeValidator(parse_keep)] = Field(default=...)
    max_summary_tokens: StrictInt = Field(default=400, ge=1, le=32_000)
    # For a shorter summary a second request is sent.
    min_summary_chars: StrictInt = Field(default=0, ge=0, le=8_000)
    fan_in: StrictInt = Field(default=5, ge=2, le=100)
    summary_budget: StrictInt = Field(default=1600, ge=1, le=200_000)
    context_window: Annotated[StrictInt, Field(ge=1, le=MAX_SIZE)] | None = None
    # The trigger's tokens follow the length of turns (triggers.py).
    adaptive: StrictBool = False
    # Compact the first whole turns with this many tokens, and no more as long as the
    # rest is within `keep`; 0 = down to `keep`.
    fold_least: StrictInt = Field(default=0, ge=0, le=MAX_SIZE)
    # Compact only when at least this many whole turns leave the window.
    batch: StrictInt = Field(default=1, ge=1, le=10_000)
    # Tokens of messages in one request of the summariser; more take several requests.
    # Each also has the prompt and the summary so far, so tiny ones cost most.
    chunk_tokens: StrictInt = Field(default=CHUNK_TOKENS, ge=LEAST_CHUNK, le=1_000_000)
    # If the summariser is the same model, it is asked at the end of the last request,
    # which the provider has in its cache (summaries/summarizer.py).
    cached_prefix: StrictBool = True
    # Messages that match one of these stay word for word. The trigger "important"
    # counts those in the window.
    important: Annotated[Sequence[str], BeforeValidator(parse_important)] = ()
    # Identifiers that a summary leaves out are added to it.
    protect: StrictBool = True
    # The form of a summary: one of the engine's, or a pydantic class.
    profile: Annotated[str | type[BaseModel], BeforeValidator(parse_profile)] = (
        "general"
    )
    # Rules that a user states are ignored, offered on the page, or kept automatically.
    rules: Literal["off", "offer", "keep"] = "offer"
    # Facts that users state about themselves: those of other conversations are sent
    # ("use"), those of this one are offered ("learn"), or both ("on").
    facts: Literal["off", "use", "learn", "on"] = "off"
    # What summaries should keep above all, in the user's own words.
    focus: Annotated[str, BeforeValidator(parse_focus)] = ""
    recall_tokens: StrictInt = Field(default=500, ge=0, le=100_000)
    # Characters; 0 leaves the arguments of old tool calls as they are.
    truncate_tool_args: StrictInt = Field(default=0, ge=0, le=MAX_SIZE)
    # Replacements for the built-in texts where not empty; the last one comes before
    # the summaries in the context.
    initial_prompt: Prompt = ""
    extend_prompt: Prompt = ""
    merge_prompt: Prompt = ""
    final_prompt: FinalPrompt = ""

    # Type checkers and editors see the fields, as of any pydantic model.
    if not TYPE_CHECKING:

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise PolicyError.from_validation_error(error) from error

    @classmethod
    def load(cls, value: object) -> Self:
        """Return the policy of a dict from `dump`, or of a part of one."""
        if not isinstance(value, dict) or not all(isinstance(k, str) for k in value):
            template = _("%(value)s: expected an object of policy settings")
            raise PolicyError(template, value=shorten_value(value))
        return cls(**value)

    @classmethod
    def from_langchain(
        cls,
        *,
        trigger: object = None,
        keep: object = ("messages", 20),
        trim_tokens_to_summarize: int | None = 4000,
        **others: Any,
    ) -> Self:
        """Return the policy for arguments of LangChain's `SummarizationMiddleware`.

        Nothing is trimmed: `trim_tokens_to_summarize` becomes the size of a chunk, and
        all messages are read.
        """
        sizes: dict[str, Any] = {"trigger": trigger, "keep": keep}
        if trim_tokens_to_summarize is not None:
            sizes["chunk_tokens"] = max(LEAST_CHUNK, trim_tokens_to_summarize)
        return cls(preset="langchain", **sizes | others)

    @property
    def uses_facts(self) -> bool:
        return self.facts in ("use", "on")

    @property
    def learns_facts(self) -> bool:
        return self.facts in ("learn", "on")

    def dump(self) -> dict[str, Any]:
        """Return plain JSON for `load`.

        A class is described by its JSON schema, which `load` rejects: no stored text
        names code.
        """
        is_class = isinstance(self.profile, type)
        return self.model_dump() | {
            "profile": self.profile.model_json_schema() if is_class else self.profile,
            "trigger": [dict(clause) for clause in self.trigger],
            "keep": list(self.keep),
            "important": list(self.important),
        }

    def digest(self) -> str:
        canonical = json.dumps(self.dump(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @model_validator(mode="before")
    @classmethod
    def _apply_preset(cls, values: dict[str, Any]) -> dict[str, Any]:
        name = values.get("preset", DEFAULT_PRESET)
        if not isinstance(name, str) or name not in PRESETS:
            raise PolicyError(
                _("preset %(value)s: expected one of %(presets)s"),
                value=shorten_value(name),
                presets=", ".join(PRESETS),
            )
        chosen = PRESETS[name]
        if "keep" in values or "trigger" in values:
            # These belong to the preset's own numbers.
            chosen = {k: v for k, v in chosen.items() if k not in OF_NUMBERS}
        return chosen | values

    def has_trigger(self, kind: str) -> bool:
        """Return whether any condition of the trigger is of this kind."""
        return any(kind in dict(clause) for clause in self.trigger)

    @model_validator(mode="after")
    def _check_important(self) -> Self:
        if self.has_trigger("important") and not self.important:
            raise PolicyError(_("trigger important: expected a pattern in “important”"))
        return self

    @model_validator(mode="after")
    def _check_keep(self) -> Self:
        kind, kept = self.keep
        for clause in self.trigger:
            limit = dict(clause).get(kind, MAX_SIZE + 1)
            if kept >= limit:
                raise PolicyError(
                    _(
                        "keep %(kept)s %(kind)s: expected less than the trigger's "
                        "%(limit)s"
                    ),
                    kept=kept,
                    kind=kind,
                    limit=limit,
                )
        if self.fold_least and kind != "tokens":
            template = _("keep %(keep)s: fold_least expects tokens")
            raise PolicyError(template, keep=str(self.keep))
        if self.adaptive and (kind != "tokens" or kept >= ADAPTIVE_MIN):
            raise PolicyError(
                _("keep %(keep)s: adaptive expects tokens, below %(limit)s"),
                keep=str(self.keep),
                limit=ADAPTIVE_MIN,
            )
        return self
