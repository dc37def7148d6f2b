"""The HTML of trials: their link in the menu of a reply, and their cards.

In the right pane it is how a request differs that was sent like one.
"""

from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from chatsite.pages import incremental
from chatsite.pages.parts import draw_dialog_button
from chatsite.pages.presenters.desk import describe_changes
from chatsite.pages.presenters.transcript_pane import ShownMessage
from chatsite.protocol.errors import explain_code
from chatsite.turns import variations
from memory.context import RequestContext
from memory.models import Conversation
from memory.view.variation import VARIED

from .models import Trial


def name_live(trial_id: int) -> str:
    """Return the name that replaces the number of a turn in the ids of its HTML."""
    return f"trial-{trial_id}"


@dataclass(frozen=True, slots=True)
class ShownTrial:
    """A trial as its card shows it.

    `live`: the values that the templates of a running reply need; None: it has ended.
    """

    trial: Trial
    changes: list[str]
    live: dict[str, Any] | None
    why: str


def show_trial(trial: Trial) -> ShownTrial:
    live = None
    if not trial.is_finished:
        name = name_live(trial.pk)
        rendered = incremental.view_of(name, trial.attempt, trial.text)
        live = {"id": name, "state": trial.state, "rendered": rendered}
    why = explain_code(trial.error) if trial.error else ""
    return ShownTrial(trial, describe_changes(trial.changes), live, why)


def draw_card(
    conversation: Conversation, trial: Trial, *, is_fragment: bool = False
) -> str:
    values = {"conversation": conversation, "shown": show_trial(trial)}
    return render_to_string("trials/_card.html", values | {"is_fragment": is_fragment})


def draw_ask(conversation: Conversation, reply: int | None) -> str:
    """Return the button that asks the question of the last reply again."""
    if reply is None:
        return ""
    return format_html(
        '<button type="button" class="small primary" hx-post="{}" hx-target="#turns"'
        ' hx-swap="beforeend">{}</button>',
        reverse("trials-ask", args=[conversation.uuid, reply]),
        _("Ask again"),
    )


def trial_to_json(trial: Trial) -> dict[str, Any]:
    call = trial.call
    names = ("state", "changes", "words", "model", "text", "asked", "error")
    return {
        "trial": trial.pk,
        "reply": trial.message.seq,
        **{name: getattr(trial, name) for name in names},
        "sha256": call and call.sha256,
        "tokens_input": call and call.tokens_input,
        "tokens_output": call and call.tokens_output,
        "created_at": trial.created_at,
    }


def draw_try_again(conversation: Conversation, message: ShownMessage) -> str:
    """Return a button in the menu of a reply whose request is known."""
    if message.role != "assistant" or not message.has_request:
        return ""
    url = reverse("trials", args=[conversation.uuid, message.seq])
    return draw_dialog_button(url, _("Try again differently…"))


def draw_next(conversation: Conversation, built: RequestContext) -> str:
    """Return the changes of the next request, and a button that drops them."""
    if variations.find_next(conversation) is None:
        return ""
    said = built.refs.get(VARIED, {})
    if variations.find_off(conversation) and not said.keys() - {"off"}:
        return ""  # the desk shows it
    changes = describe_changes({**said, "off": ()}, usual=())
    values = {"conversation": conversation, "changes": changes}
    return render_to_string("trials/_next.html", values)
