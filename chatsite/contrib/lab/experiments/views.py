"""Pages of policy experiments: the list with a new one, its progress and result.

Numbers are shown to all who may see numbers; starting one requires the right to
read, as the conversation's texts are sent to a model.
"""

import json
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)
from django_htmx.http import HttpResponseClientRefresh

from chatsite.protocol.errors import explain_code
from chatsite.review import access_log
from chatsite.review.pages import query_number, render_page, review_page
from chatsite.review.rights import Rights
from memory.models import Conversation

from . import report, sides, store
from .forms import ExperimentForm
from .models import Experiment
from .replay_steps import ReplaySteps
from .samples.drawing import Drawn, measure_conversation

MAX_LISTED = 100


@require_http_methods(["GET", "HEAD", "POST"])
@review_page()
def show_experiments(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> HttpResponse:
    """Show the experiments with the conversation, and the form for a new one."""
    size = measure_conversation(conversation)
    form = None
    if request.method == "POST":
        if not rights.content:
            raise PermissionDenied
        form = ExperimentForm(request.POST)
        if experiment := _start_experiment(request, size, form):
            access_log.record_access(
                request, "try", conversation, f"experiment {experiment.pk}"
            )
            return redirect("experiment", conversation.pk, experiment.pk)
    elif rights.content:
        form = ExperimentForm.for_experiment(conversation, size.tokens)
        access_log.record_access(request, "view", conversation, "policy")
    rows = conversation.experiments.filter(sample=None).select_related("user")
    return render_page(
        request,
        "experiments/list.html",
        conversation,
        _("Policy experiments"),
        experiments=rows.defer("result")[:MAX_LISTED],
        form=form and form.in_admin(size.model),
        is_empty=not size.messages,
    )


def _start_experiment(
    request: HttpRequest, size: Drawn, form: ExperimentForm
) -> Experiment | None:
    """Return the experiment, which waits, or None.

    If None, the form has the errors and keeps its values.
    """
    if not form.is_valid():
        return None
    if error := _find_obstacle(request.user.pk, size.messages):
        form.add_error(None, error)
        return None
    values = form.cleaned_data
    experiment = size.make_experiment(
        request.user.pk, values["policy"], values["budget"]
    )
    experiment.save()
    return experiment


def _find_obstacle(user_id: int, messages: int) -> str:
    """Return the reason why no experiment can be started, or ""."""
    if not messages:
        return _("This conversation has no messages, so there is nothing to replay.")
    if refusal := store.find_refusal(user_id):
        return refusal
    if count := store.full_at(user_id):
        return _(
            "%(count)s experiments are waiting already. Start this one "
            "when some have ended."
        ) % {"count": count}
    return ""


def _find_experiment(conversation: Conversation, experiment: int) -> Experiment:
    rows = conversation.experiments.select_related("user")
    return get_object_or_404(rows, pk=experiment)


@require_safe
@review_page()
def show_experiment(
    request: HttpRequest, conversation: Conversation, rights: Rights, experiment: int
) -> HttpResponse:
    row = _find_experiment(conversation, experiment)
    is_compared = row.is_finished and "sides" in (row.result or {})
    values: dict[str, Any] = {"experiment": row, "is_compared": is_compared}
    if rights.content:
        access_log.record_access(request, "view", conversation, f"experiment {row.pk}")
        values["policy_text"] = json.dumps(row.policy, ensure_ascii=False)
    if is_compared:
        values |= _compare_sides(request, row, rights)
    return render_page(
        request,
        "experiments/experiment.html",
        conversation,
        _("Experiment %(number)s") % {"number": row.pk},
        why=explain_end(row),
        **values,
        parent=reverse("experiments", args=[conversation.pk]),
        parent_title=_("Policy experiments"),
    )


def _compare_sides(
    request: HttpRequest, experiment: Experiment, rights: Rights
) -> dict[str, Any]:
    steps = ReplaySteps.from_json(experiment.result["steps"])
    turn = query_number(request, "turn")
    if turn and turn <= len(steps.turns):
        pair = sides.at_turn(experiment, steps, turn, rights)
    else:
        turn, pair = None, sides.at_end(experiment, steps, rights)
    return {
        "lines": report.list_costs(experiment),
        "chart": report.draw_sides(experiment, steps),
        "pair": pair,
        "turn": turn,
        "turns": len(steps.turns),
        "facts": experiment.result["facts"],
        "lost": experiment.result["sides"],
    }


def explain_end(experiment: Experiment) -> str:
    """Explain in words how the experiment ended."""
    words = {
        "": "",
        "budget": _("The budget has no room for another request. Give it more tokens."),
        "cancelled": _("It was cancelled."),
        "message_deleted": _("A message that it read was deleted. Start it again."),
        "interrupted": _("The servers that ran it stopped several times. Try again."),
    }
    code = experiment.error
    return words[code] if code in words else explain_code(code)


@require_safe
@review_page()
def show_progress(
    request: HttpRequest, conversation: Conversation, rights: Rights, experiment: int
) -> HttpResponse:
    """Return the bar alone, or reload the page once the experiment has ended."""
    row = _find_experiment(conversation, experiment)
    if row.is_finished:
        return HttpResponseClientRefresh()
    values = {"experiment": row, "conversation": conversation, "rights": rights}
    return TemplateResponse(request, "experiments/_progress.html", values)


@require_POST
@review_page("content")
def cancel_experiment(
    request: HttpRequest, conversation: Conversation, rights: Rights, experiment: int
) -> HttpResponse:
    row = _find_experiment(conversation, experiment)
    store.EXPERIMENTS.cancel_rows(Experiment.objects.filter(pk=row.pk))
    access_log.record_access(
        request, "try", conversation, f"experiment {row.pk} cancelled"
    )
    messages.info(request, _("It will stop as soon as it can."))
    return redirect("experiment", conversation.pk, row.pk)
