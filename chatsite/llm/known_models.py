"""The table of models that the site names, and of those that end.

Windows are those of LangChain's profiles, and ends those of the SDKs; tests compare
them with what is installed. A price is of a million tokens.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

from .provider_file import Prices

# Small, and without a date of its end. By LangChain's profile it takes tools and a
# temperature, and reasons only if it is asked to, so that a reply begins at once.
DEFAULT_MODEL = "gpt-5.4-mini"


# OpenAI's models that only its Responses API has, as langchain-openai knows them.
RESPONSES_ONLY = re.compile(r"gpt-5(\.[245])?-pro|gpt-5\.6-sol|.*codex|o[13]-pro")


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model as its provider describes it at the source, on the day it was read."""

    window: int
    prices: Prices
    source: str
    read_on: date = date(2026, 11, 29)


OPENAI_PAGES = "https://developers.openai.com/api/docs/models"
CLAUDE_PAGES = "https://platform.claude.com/docs/en/about-claude/models/overview"
MODELS: Mapping[str, KnownModel] = MappingProxyType(
    {
        "gpt-5.4-mini": KnownModel(
            400_000,
            # OpenAI takes nothing for writing to the cache before its GPT-5.6.
            Prices(input=0.75, cached=0.075, output=4.5, cache_write=0.75),
            f"{OPENAI_PAGES}/gpt-5.4-mini",
        ),
        "gpt-5.4": KnownModel(
            1_050_000,
            Prices(input=2.5, cached=0.25, output=15.0, cache_write=2.5),
            f"{OPENAI_PAGES}/gpt-5.4",
        ),
        "claude-sonnet-5-5": KnownModel(
            1_000_000, Prices(input=2.0, cached=0.2, output=10.0), CLAUDE_PAGES
        ),
    }
)

# Announced in openai 3.57 and anthropic 2.14, read on 2026-11-29. What ended before
# SINCE is left out. A name includes its dated forms, unless those are named.
SINCE = date(2026, 8, 1)
SHUTDOWNS: Mapping[str, str] = MappingProxyType(
    {
        "2026-08-10": "gpt-5.3-chat-latest gpt-5.2-chat-latest",
        "2026-09-28": "gpt-3.5-turbo-1106",
        "2026-10-23": "gpt-4.1-nano o4-mini o3-mini o1 gpt-4o-2024-05-13 gpt-4-turbo "
        "gpt-4-1106-preview gpt-4 gpt-4-0613 gpt-3.5-turbo "
        "gpt-3.5-turbo-0125",
        "2026-11-30": "claude-sonnet-4-5",
        "2026-12-11": "gpt-5 gpt-5-mini gpt-5-nano o3",
        "2027-01-14": "gpt-4.1 gpt-4.1-mini gpt-4o gpt-4o-mini",
        "2027-01-20": "gpt-audio-mini",
        "2027-01-22": "claude-opus-4-5",
        "2027-04-01": "gpt-5.4-nano gpt-5.1",
    }
)
_DATES = {
    name: date.fromisoformat(day)
    for day, names in SHUTDOWNS.items()
    for name in names.split()
}


def find_shutdown(name: str) -> date | None:
    """Return the day on which the provider shuts the model down, if one is known."""
    undated, _, _ = name.partition("-20")
    return _DATES.get(name) or _DATES.get(undated)
