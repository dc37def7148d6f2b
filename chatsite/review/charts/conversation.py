"""The figures of one conversation: tokens of its prompts, turn by turn, and summaries.

They also show how large the whole transcript would have been. Numbers, no text.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from chatsite.llm import providers
from chatsite.pages.forms import UNITS
from chatsite.pages.presenters import savings
from chatsite.pages.presenters.savings import ReplyPrompt
from chatsite.turns.requests import model_of
from memory.engine.policy import ADAPTIVE_MAX, ADAPTIVE_MIN, Policy
from memory.models import Conversation, Summary

from ..pages import render_page, review_page
from ..rights import Rights
from .drawing import Chart, ChartTable, Series, draw_lines, group_points, to_digits

UNDONE = (Summary.Status.FAILED, Summary.Status.REJECTED)


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit at which the policy compacts: in words, and in tokens if known."""

    tokens: float | None
    text: str


def describe_limit(policy: Policy, context_window: int) -> Limit:
    if not policy.enabled:
        return Limit(None, _("This conversation is never summarised."))
    if policy.adaptive:
        words = _(
            "Summarises at %(least)s to %(most)s tokens in the window, "
            "depending on its turns."
        )
        values = {"least": to_digits(ADAPTIVE_MIN), "most": to_digits(ADAPTIVE_MAX)}
        return Limit(None, words % values)
    window = policy.context_window or context_window
    sizes = [
        n if kind == "tokens" else n * window
        for clause in policy.trigger
        for kind, n in clause
        if kind in ("tokens", "fraction")
    ]
    if sizes:
        words = _("summarises at %(tokens)s tokens in the window")
        return Limit(min(sizes), words % {"tokens": to_digits(min(sizes))})
    units = ", ".join(
        f"{to_digits(n)} {UNITS[kind]}"
        for clause in policy.trigger
        for kind, n in clause
    )
    return Limit(
        None,
        _("Summarises by other measures than tokens: %(units)s.") % {"units": units},
    )


@require_safe
@review_page()
def show_figures(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> HttpResponse:
    return render_page(
        request,
        "admin/review/figures.html",
        conversation,
        _("Figures"),
        chart=draw_prompts(conversation),
        savings=savings.measure_savings(conversation),
    )


urlpatterns = [path("<int:pk>/figures/", show_figures, name="review-figures")]


def draw_prompts(conversation: Conversation) -> Chart:
    """Prompt tokens per turn, from the requests that were made here."""
    name, title = "prompts", _("Prompt tokens per turn")
    prompts = savings.list_prompts(conversation)
    if not prompts:
        message = _("No reply was made here yet: nothing to draw.")
        return Chart(name, title, message=message)
    window = providers.context_window(model_of(conversation))
    limit = describe_limit(conversation.get_policy(), window)
    compactions = _place_compactions(conversation, prompts)
    step, groups, numbers = group_points(prompts)
    sent = [max(p.sent for p in group) for group in groups]
    whole = [max(p.whole for p in group) for group in groups]
    reported = sum(prompt.is_reported for prompt in prompts)
    label = _("sent, reported where known, else estimated")
    if reported in (0, len(prompts)):
        label = _("sent, reported") if reported else _("sent, estimated")
    all_label = _("the whole transcript each time, estimated")
    made: dict[int, list[str]] = {}
    for place, tip in compactions:
        made.setdefault(max(0, int(place)) // step, []).append(tip)
    head = (
        *(_("Turn"), _("Reply"), _("Sent"), _("Known from")),
        *(_("Whole transcript"), _("Summarised then")),
    )
    rows = tuple(
        (
            numbers[n],
            f"#{group[-1].seq}",
            to_digits(sent[n]),
            _("report") if all(p.is_reported for p in group) else _("estimate"),
            to_digits(round(whole[n])),
            ", ".join(made.get(n, ())),
        )
        for n, group in enumerate(groups)
    )
    return draw_lines(
        name,
        title,
        _describe_prompts(prompts, len(compactions), limit),
        [Series("quiet", all_label, whole, "none"), Series("main", label, sent)],
        numbers,
        marks=[((place + 0.5) / step - 0.5, tip) for place, tip in compactions],
        mark_label=_("a summary was written"),
        level=(limit.tokens, limit.text) if limit.tokens else None,
        table=ChartTable(head, rows),
    )


def _describe_prompts(
    prompts: Sequence[ReplyPrompt], compactions: int, limit: Limit
) -> str:
    sent = sum(prompt.sent for prompt in prompts)
    whole = round(sum(prompt.whole for prompt in prompts))
    words = _(
        "Turns: %(turns)s, summaries: %(summaries)s. Prompt tokens: %(sent)s in total, "
        "at most %(most)s at once. With the full transcript: %(whole)s."
    ) % {
        "turns": to_digits(len(prompts)),
        "summaries": to_digits(compactions),
        "sent": to_digits(sent),
        "most": to_digits(max(prompt.sent for prompt in prompts)),
        "whole": to_digits(whole),
    }
    return words if limit.tokens else f"{words} {limit.text}"


def _place_compactions(
    conversation: Conversation, prompts: Sequence[ReplyPrompt]
) -> list[tuple[float, str]]:
    """Yield the place of each version: between the two turns where it was made."""
    times = [prompt.at for prompt in prompts]
    rows = conversation.summaries.exclude(status__in=UNDONE).filter(
        created_at__gte=F("conversation__created_at")
    )
    values = rows.order_by("version").values_list(
        "version", "first_seq", "last_seq", "created_at"
    )
    return [
        (bisect_right(times, at) - 0.5, f"v{version}: #{first}–#{last}")
        for version, first, last, at in values
    ]
