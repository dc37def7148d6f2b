"""The HTML of trials: their link in the menu of a reply, and their cards.

In the right pane it is how a request differs that was sent like one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from chatsite.features.tools.registry import label_of
from chatsite.llm import providers
from chatsite.pages import incremental
from chatsite.pages.presenters.transcript_pane import ShownMessage
from chatsite.protocol.errors import explain_code
from chatsite.turns import variations
from memory.context import RequestContext
from memory.engine.policy import LABELS
from memory.models import Conversation
from memory.view.variation import VARIED

from .models import Trial
from .services import read_changes


def name_live(trial_id: int) -> str:
    """Return the name that replaces the number of a turn in the ids of its HTML."""
    return f"trial-{trial_id}"


def describe_changes(changes: Mapping[str, Any]) -> list[str]:
    """Return the changes in words."""
    return list(_describe_each(changes)) or [_("unchanged, asked again")]


def _describe_each(changes: Mapping[str, Any]) -> Iterator[str]:
    if model := changes.get("model"):
        yield _("model %(model)s") % {"model": providers.name_model(model)}
    if (temperature := changes.get("temperature")) is not None:
        yield _("temperature %(number)s") % {"number": temperature}
    if preset := changes.get("preset"):
        yield _("memory settings: %(name)s") % {"name": _(LABELS.get(preset, preset))}
    if changes.get("without_recall"):
        yield _("without notes from earlier messages")
    if changes.get("without_summaries"):
        yield _("without summaries")
    for name, words in (
        ("edited", _("message #%(seq)s reworded")),
        ("left_out", _("without message #%(seq)s")),
        ("brought_back", _("with message #%(seq)s brought back")),
    ):
        if seq := changes.get(name):
            yield words % {"seq": seq}


@dataclass(frozen=True, slots=True)
class ShownTrial:
    """A trial as its card shows it.

    `live`: the values that the templates of a running reply need; None: it has ended.
    """

    trial: Trial
    changes: list[str]
    live: dict[str, Any] | None
    why: str
    asked: list[str]

    @property
    def model(self) -> str:
        return providers.name_model(self.trial.model)


def show_trial(trial: Trial) -> ShownTrial:
    live = None
    if not trial.is_finished:
        name = name_live(trial.pk)
        rendered = incremental.view_of(name, trial.attempt, trial.text)
        live = {"id": name, "state": trial.state, "rendered": rendered}
    return ShownTrial(
        trial,
        describe_changes(trial.changes),
        live,
        explain_code(trial.error) if trial.error else "",
        [label_of(name) for name in trial.asked],
    )


def draw_card(
    conversation: Conversation, trial: Trial, *, is_fragment: bool = False
) -> str:
    values = {"conversation": conversation, "shown": show_trial(trial)}
    return render_to_string("trials/_card.html", values | {"is_fragment": is_fragment})


def trial_to_json(trial: Trial) -> dict[str, Any]:
    call = trial.call
    return {
        "trial": trial.pk,
        "reply": trial.message.seq,
        "state": trial.state,
        "changes": trial.changes,
        "words": trial.words,
        "model": trial.model,
        "text": trial.text,
        "asked": trial.asked,
        "error": trial.error,
        "sha256": call and call.sha256,
        "tokens_input": call and call.tokens_input,
        "tokens_output": call and call.tokens_output,
        "created_at": trial.created_at,
    }


def draw_try_again(conversation: Conversation, message: ShownMessage) -> str:
    """Return a button in the menu of a reply whose request is known."""
    if message.role != "assistant" or not message.has_request:
        return ""
    return format_html(
        '<button type="button" class="item" hx-get="{}" hx-target="#dialog-body">{}'
        "</button>",
        reverse("trials", args=[conversation.uuid, message.seq]),
        _("Try again differently…"),
    )


def draw_next(conversation: Conversation, built: RequestContext) -> str:
    """Return the changes of the next request, and a button that drops them."""
    if variations.find_next(conversation) is None:
        return ""
    changes = list(_describe_each(built.refs.get(VARIED, {})))
    values = {"conversation": conversation, "changes": changes}
    return render_to_string("trials/_next.html", values)


def draw_varied(conversation: Conversation, seq: int) -> str:
    """Return the changes of a request that was sent for one message only."""
    changes = read_changes(conversation, seq)
    if not changes:
        return ""
    words = "; ".join(describe_changes(changes))
    said = _("Only this message was sent differently: %(changes)s.")
    return format_html(' · <span class="varied">{}</span>', said % {"changes": words})
