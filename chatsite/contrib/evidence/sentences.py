"""The verifiers' answers in the language of the page: they themselves write English."""

from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from .verify import COUNTS

# Regular expressions of JavaScript for each sentence, with what replaces it.
SENTENCES = (
    (r"signed by (\S+) on (\S+) at (\S+) UTC", _("signed by $1 on $2 at $3 UTC")),
    (r" \(its key was retired on (\S+)\)", _(" (its key was retired on $1)")),
    (r"the request rebuilds to its hash", _("the request rebuilds to its hash")),
    (r"the request is not rebuilt: ", _("the request is not rebuilt: ")),
    (r"its owner has left out a part of it", _("its owner has left out a part of it")),
    (r"(\d+) of (\d+) messages accounted for: ", _("$1 of $2 messages: ")),
    (r"(\d+) sent", _("$1 sent")),
    (r"(\d+) to be sent", _("$1 to be sent")),
    (r"(\d+) in (\d+) summar(?:y|ies)", _("$1 in $2 summaries")),
    (r"(\d+) left out by their owner", _("$1 left out by their owner")),
    (r"(\d+) held by the provider", _("$1 held by the provider")),
    (r"(\d+) left out by a rule", _("$1 left out by a rule")),
    (r"(\d+) erased", _("$1 erased")),
    (r"^changed: ", _("changed: ")),
    (r"it has no signature that fits its hashes", _("no signature fits its hashes")),
    (r"; ", _("; ")),
    (r", ", _(", ")),
)


def list_replacements() -> list[tuple[str, str]]:
    """Return pairs of a regular expression and its words; none for English."""
    if (get_language() or "en").startswith("en"):
        return []
    numbers = [(f"in {word} summ", f"in {n} summ") for n, word in enumerate(COUNTS)]
    return [*numbers, *((pattern, str(words)) for pattern, words in SENTENCES)]
