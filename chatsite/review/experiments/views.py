"""The policy lab's pages: what was tried, a new trial, its progress and its result.

Numbers are for all who may see numbers; to start one takes the right to read, as the
conversation's texts go to a model for it.
"""

import json
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Max, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRefresh

from chatsite.llm import providers
from chatsite.protocol.errors import CommandError, explain
from chatsite.turns import limits, requests
from memory import context
from memory.models import Conversation

from .. import access_log
from ..models import Trial
from ..pages import desk_view, render
from ..rights import Rights
from . import report, sides, store
from .forms import TrialForm
from .steps import Steps

MAX_LISTED = 100


@require_http_methods(["GET", "POST"])
@desk_view()
def show_trials(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> HttpResponse:
    """What was tried with the conversation, and the form for something else."""
    size = context.visible(conversation).aggregate(
        tokens=Sum("tokens"), last_seq=Max("seq")
    )
    form = None
    if request.method == "POST":
        form = _posted(request, rights)
        if trial := _start(request, conversation, form, size["last_seq"]):
            access_log.record(request, "try", conversation, f"trial {trial.pk}")
            return redirect("admin:desk-trial", conversation.pk, trial.pk)
    elif rights.content:
        form = TrialForm.for_trial(conversation, size["tokens"] or 0)
        access_log.record(request, "view", conversation, "policy")
    return render(
        request,
        "admin/desk/trials.html",
        conversation,
        _("Policy lab"),
        trials=conversation.trials.select_related("user").defer("result")[:MAX_LISTED],
        form=form,
        is_empty=size["last_seq"] is None,
        model=providers.label(_summariser(conversation)),
    )


def _posted(request: HttpRequest, rights: Rights) -> TrialForm:
    if not rights.content:
        raise PermissionDenied
    return TrialForm(request.POST)


def _start(
    request: HttpRequest,
    conversation: Conversation,
    form: TrialForm,
    last_seq: int | None,
) -> Trial | None:
    """The trial, waiting; None: the form says what is wrong, and keeps its values."""
    if not form.is_valid():
        return None
    if error := _hindrance(request.user.pk, last_seq):
        form.add_error(None, error)
        return None
    return Trial.objects.create(
        conversation=conversation,
        user=request.user,
        policy=form.cleaned_data["policy"],
        model=_summariser(conversation),
        budget=form.cleaned_data["budget"],
        last_seq=last_seq,
        all_messages=context.visible(conversation).filter(seq__lte=last_seq).count(),
    )


def _hindrance(user_id: int, last_seq: int | None) -> str:
    try:
        limits.admit_spending(user_id)
    except CommandError as error:
        return error.detail
    if last_seq is None:
        return _("This conversation has no messages, so there is nothing to play.")
    if settings.TRIALS_AT_ONCE <= 0:
        return _("Trials are switched off on this site (TRIALS_AT_ONCE is 0).")
    if not store.has_room():
        return _(
            "%(count)s trials are waiting already. Start this one when some have ended."
        ) % {"count": store.MAX_QUEUED}
    return ""


def _summariser(conversation: Conversation) -> str:
    return providers.summary_model(requests.model_of(conversation))


def _find(conversation: Conversation, trial: int) -> Trial:
    rows = conversation.trials.select_related("user")
    return get_object_or_404(rows, pk=trial)


@require_GET
@desk_view()
def show_trial(
    request: HttpRequest, conversation: Conversation, rights: Rights, trial: int
) -> HttpResponse:
    row = _find(conversation, trial)
    values: dict[str, Any] = {"trial": row, "is_compared": _is_compared(row)}
    if rights.content:
        access_log.record(request, "view", conversation, f"trial {row.pk}")
        values["policy_text"] = json.dumps(row.policy, ensure_ascii=False)
    if values["is_compared"]:
        values |= _compared(request, row, rights)
    return render(
        request,
        "admin/desk/trial.html",
        conversation,
        _("Trial %(number)s") % {"number": row.pk},
        **_progress(row),
        **values,
        parent=reverse("admin:desk-trials", args=[conversation.pk]),
        parent_title=_("Policy lab"),
    )


def _is_compared(trial: Trial) -> bool:
    return trial.is_finished and "sides" in (trial.result or {})


def _compared(request: HttpRequest, trial: Trial, rights: Rights) -> dict[str, Any]:
    steps = Steps.load(trial.result["steps"])
    turn = _turn(request, len(steps.turns))
    pair = (
        sides.at_turn(trial, steps, turn, rights)
        if turn
        else sides.at_end(trial, steps, rights)
    )
    return {
        "lines": report.compare(trial),
        "chart": report.draw(trial, steps),
        "pair": pair,
        "turn": turn,
        "turns": len(steps.turns),
        "facts": trial.result["facts"],
        "lost": {name: report.lost(trial, name) for name in ("real", "trial")},
    }


def _turn(request: HttpRequest, most: int) -> int | None:
    """The turn that is asked for; None: the end, also for what is no turn."""
    asked = request.GET.get("turn", "")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 0
    return number if 1 <= number <= most else None


def _progress(trial: Trial) -> dict[str, Any]:
    return {"why": why(trial), "left": max(0, trial.budget - trial.spent)}


def why(trial: Trial) -> str:
    """How it ended, in words."""
    words = {
        "": "",
        "budget": _("The budget has no room for another request. Give it more tokens."),
        "cancelled": _("It was cancelled."),
        "message_deleted": _("A message that it read was deleted. Start it again."),
        "interrupted": _(
            "The servers that played it stopped several times. Try again."
        ),
    }
    return words[trial.error] if trial.error in words else explain(trial.error)


@require_GET
@desk_view()
def show_progress(
    request: HttpRequest, conversation: Conversation, rights: Rights, trial: int
) -> HttpResponse:
    """The bar alone; the whole page once the trial has ended."""
    row = _find(conversation, trial)
    if row.is_finished:
        return HttpResponseClientRefresh()
    values = {"trial": row, "conversation": conversation, "rights": rights}
    return TemplateResponse(request, "admin/desk/_trial_progress.html", values)


@require_POST
@desk_view("content")
def cancel(
    request: HttpRequest, conversation: Conversation, rights: Rights, trial: int
) -> HttpResponse:
    row = _find(conversation, trial)
    store.cancel(row)
    access_log.record(request, "try", conversation, f"trial {row.pk} cancelled")
    messages.info(request, _("The trial will stop as soon as it can."))
    return redirect("admin:desk-trial", conversation.pk, row.pk)


urlpatterns = [
    path("<int:pk>/trials/", show_trials, name="desk-trials"),
    path("<int:pk>/trials/<int:trial>/", show_trial, name="desk-trial"),
    path(
        "<int:pk>/trials/<int:trial>/progress/",
        show_progress,
        name="desk-trial-progress",
    ),
    path("<int:pk>/trials/<int:trial>/cancel/", cancel, name="desk-trial-cancel"),
]
