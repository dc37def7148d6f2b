"""The form that starts an experiment."""

from collections.abc import Iterable, Iterator
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.pages.forms import PolicyForm
from memory.engine.policy import KEEP_KINDS, TRIGGER_KINDS
from memory.models import Conversation

from ..labels import POLICY_UNITS

MAX_BUDGET = 10_000_000
LEAST_BUDGET = 20_000
# Tokens a summariser reads and writes for each one of the transcript, with room.
BUDGET_FACTOR = 4
PROMPTS = ("initial_prompt", "extend_prompt", "merge_prompt")


def _unit_field(names: Iterable[str], label: Any) -> forms.ChoiceField:
    return forms.ChoiceField(
        choices=lambda: [(name, POLICY_UNITS[name]) for name in names],
        required=False,
        widget=forms.Select(attrs={"aria-label": label}),
    )


def _prompt(label: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 70}),
        help_text=gettext_lazy("Empty: the built-in one."),
    )


class ExperimentForm(PolicyForm):
    """A policy to try, its most common settings as fields, and what it may cost."""

    trigger_size = forms.FloatField(label=gettext_lazy("Summarise at"), required=False)
    trigger_kind = _unit_field(TRIGGER_KINDS, gettext_lazy("Summarise at, counted in"))
    keep_size = forms.FloatField(label=gettext_lazy("Keep"), required=False)
    keep_kind = _unit_field(KEEP_KINDS, gettext_lazy("Keep, counted in"))
    max_summary_tokens = forms.IntegerField(
        label=gettext_lazy("Longest summary, in tokens"), required=False
    )
    initial_prompt = _prompt(gettext_lazy("Prompt for the first summary"))
    extend_prompt = _prompt(gettext_lazy("Prompt to extend a summary"))
    merge_prompt = _prompt(gettext_lazy("Prompt to merge summaries"))
    budget = forms.IntegerField(
        label=gettext_lazy("Budget, in tokens"),
        min_value=1,
        max_value=MAX_BUDGET,
        help_text=gettext_lazy(
            "What the summariser may read and write. No request is sent that could go "
            "beyond it."
        ),
    )

    field_order = (
        *("preset", "trigger_size", "trigger_kind", "keep_size", "keep_kind"),
        *("max_summary_tokens", "no_compaction", "no_recall", *PROMPTS),
        *("overrides", "budget"),
    )

    @classmethod
    def for_experiment(
        cls, conversation: Conversation, tokens: int
    ) -> "ExperimentForm":
        """As the conversation is remembered now; the budget by its length."""
        stored = PolicyForm.of(conversation).initial
        own = stored.get("overrides")
        initial = {**stored, "budget": max(LEAST_BUDGET, BUDGET_FACTOR * tokens)}
        if isinstance(own, dict):
            fields = dict(_fields_of(own))
            known = {name.removesuffix("_size") for name in fields}
            others = {k: v for k, v in own.items() if k not in known}
            initial |= {**fields, "overrides": others or None}
        return cls(initial=initial)

    def rows(self) -> Iterator[tuple[BoundField, BoundField | None]]:
        """The fields as they are on the page: a size with its unit."""
        for field in self.visible_fields():
            if not field.name.endswith("_kind"):
                kind = field.name.replace("_size", "_kind")
                yield field, self[kind] if kind != field.name else None

    def clean(self) -> dict[str, Any]:
        overrides = self.cleaned_data.get("overrides") or {}
        if isinstance(overrides, dict):
            self.cleaned_data["overrides"] = {**overrides, **self._own(overrides)}
        return super().clean()

    def _own(self, overrides: dict[str, Any]) -> dict[str, Any]:
        """The settings that have a field of their own and were given there."""
        found: dict[str, Any] = {}
        for name in ("trigger", "keep"):
            size = self.cleaned_data.get(f"{name}_size")
            if size is not None:
                kind = self.cleaned_data.get(f"{name}_kind")
                is_whole = kind != "fraction" and size == int(size)
                found[name] = [kind, int(size) if is_whole else size]
        for name in ("max_summary_tokens", *PROMPTS):
            if self.cleaned_data.get(name) not in (None, ""):
                found[name] = self.cleaned_data[name]
        if twice := sorted(found.keys() & overrides.keys()):
            self.add_error(
                "overrides",
                ValidationError(
                    _("Given twice, here and in a field of its own: %(names)s."),
                    params={"names": ", ".join(twice)},
                ),
            )
        return found


def _fields_of(policy: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values of the form's fields, as far as the stored settings have that form."""
    for name in ("trigger", "keep"):
        match policy.get(name):
            case [str(kind), int() | float() as size] if kind in POLICY_UNITS:
                yield f"{name}_kind", kind
                yield f"{name}_size", size
    for name in ("max_summary_tokens", *PROMPTS):
        if name in policy:
            yield name, policy[name]
