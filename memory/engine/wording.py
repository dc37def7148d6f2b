"""Sentences that can be said in any language: a template, and what fills its places.

The engine speaks English; whoever shows a sentence to people hands over a translation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


def gettext_noop(text: str) -> str:
    """Marks a template for the catalogs of translations, which find it by this name."""
    return text


@dataclass(frozen=True, slots=True)
class Wording:
    template: str
    values: Mapping[str, object] = field(default_factory=dict)

    def say(self, translate: Callable[[str], str] = str) -> str:
        """The sentence and all sentences inside it, in the language of `translate`."""
        template = translate(self.template) if self.template else ""
        values = {
            name: value.say(translate) if isinstance(value, Wording) else value
            for name, value in self.values.items()
        }
        return template % values if values else template
