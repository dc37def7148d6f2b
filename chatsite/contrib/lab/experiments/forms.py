"""The form that starts an experiment."""

from typing import Any, ClassVar

from django import forms
from django.contrib.admin.helpers import AdminForm
from django.utils.html import escape
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.llm import providers
from chatsite.pages.forms import PolicyForm
from memory.models import Conversation

MAX_BUDGET = 10_000_000
LEAST_BUDGET = 20_000
# Tokens that a summariser reads and writes per token of the transcript, with a margin.
BUDGET_FACTOR = 4
PROMPTS = ("initial_prompt", "extend_prompt", "merge_prompt")


def _prompt_field(label: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 70}),
        help_text=gettext_lazy("Leave empty to use the built-in prompt."),
    )


class ExperimentForm(PolicyForm):
    """A policy to try, and its budget."""

    SETTINGS: ClassVar = (*PolicyForm.SETTINGS, "max_summary_tokens", *PROMPTS)

    max_summary_tokens = forms.IntegerField(
        label=gettext_lazy("Longest summary, in tokens"), required=False
    )
    initial_prompt = _prompt_field(gettext_lazy("Prompt for the first summary"))
    extend_prompt = _prompt_field(gettext_lazy("Prompt to extend a summary"))
    merge_prompt = _prompt_field(gettext_lazy("Prompt to merge summaries"))
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
        *("strategy", "important", "rules", "focus", "max_summary_tokens"),
        *("no_compaction", "no_recall"),
        *(*PROMPTS, "overrides", "budget"),
    )

    @classmethod
    def for_experiment(
        cls, conversation: Conversation, tokens: int
    ) -> "ExperimentForm":
        """Return a form with the conversation's policy, and a budget by its length."""
        budget = max(LEAST_BUDGET, BUDGET_FACTOR * tokens)
        return cls(initial={**cls.read_initial(conversation.policy), "budget": budget})

    def in_admin(self, model: str) -> AdminForm:
        """Return the form as the admin draws it; `model` will write the summaries."""
        words = _("Summaries are written by: %(model)s")
        rows = [[each.name for each in row if each] for row in self.field_rows()]
        options = {
            "fields": rows,
            "description": escape(words % {"model": providers.name_model(model)}),
        }
        return AdminForm(self, [(_("Try a policy"), options)], {})
