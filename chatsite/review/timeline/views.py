"""The timeline's page with its tabs, and the page of one reply with its request."""

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.features.tools.parts import draw_called
from chatsite.pages.presenters.locations import location_of, states_of
from chatsite.turns.models import Turn
from memory.integrity import signatures
from memory.models import Conversation, Message, Summary

from .. import redaction
from ..access_log import StaffAction, record_access
from ..pages import query_number, render_page, review_page, timeline_url
from ..redaction import select_readable, show_row_text
from ..rights import Rights
from . import log, picture, request_inspector, steps

PAGE_MESSAGES = 100

Values = dict[str, Any]


@review_page()
def show_timeline(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> HttpResponse:
    name = request.GET.get("tab", "")
    name = name if name in TABS else "steps"
    _title, show = TABS[name]
    values = show(request, conversation, rights)
    if rights.content and (target := values.pop("target", "")):
        record_access(request, StaffAction.VIEW, conversation, target)
    tabs = [
        (each, title, timeline_url(conversation.pk, tab=each))
        for each, (title, _show) in TABS.items()
    ]
    return render_page(
        request,
        f"admin/review/timeline/{name}.html",
        conversation,
        capfirst(_("timeline")),
        tab=name,
        tabs=tabs,
        messages_count=max(conversation.next_seq - 1, 0),
        **values,
    )


def _show_steps(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> Values:
    wanted = query_number(request, "v") or query_number(request, "b")
    shown = steps.find_step_version(conversation, rights, wanted)
    if shown is None:
        return {"step": None, "missing": wanted, "target": ""}
    step = steps.step_of(conversation, rights, shown, query_number(request, "page"))
    # Two versions, as asked for; else the shown one with the one it went on from.
    old, new = query_number(request, "a"), query_number(request, "b")
    if not old and not new and len(step["sources"]) == 1 and step["pieces"]:
        old = step["sources"][0]["row"].version
    new = new or shown.version
    target = f"timeline v{shown.version}"
    comparison = None
    if rights.content and old:
        comparison = steps.compare_versions(conversation, old, new)
        target += f", v{old}–v{new}"
    return {
        "step": step,
        "around": steps.find_neighbours(conversation, shown),
        "legend": picture.LEGEND,
        "compared": (old, new),
        "comparison": comparison,
        "target": target,
    }


def _show_transcript(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> Values:
    """Show the whole transcript, and where the model sees each message."""
    page, seq = query_number(request, "page"), query_number(request, "seq")
    if seq and not page:
        page = conversation.messages.filter(seq__lt=seq).count() // PAGE_MESSAGES + 1
    rows = select_readable(conversation.messages, rights, redaction.MESSAGE).order_by(
        "seq"
    )
    shown = Paginator(rows, PAGE_MESSAGES).get_page(page)
    found = list(shown)
    states = states_of(conversation, [row.seq for row in found])
    active = conversation.summaries.filter(status=Summary.Status.ACTIVE)
    summaries = list(active.order_by("first_seq").defer(*redaction.SUMMARY))
    called = draw_called(conversation, rights, found)
    entries = [
        {
            "row": row,
            "called": called.get(row.pk, ""),
            "text": show_row_text(row, rights),
            "mark": location_of(row, states.get(row.seq), summaries),
            "holds": signatures.has_valid_signature(row) if rights.content else None,
        }
        for row in found
    ]
    target = f"transcript #{found[0].seq}–#{found[-1].seq}" if found else ""
    return {"page": shown, "entries": entries, "wanted": seq, "target": target}


def _show_view(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> Values:
    replies = conversation.messages.filter(role=Message.Role.ASSISTANT).order_by("seq")
    numbers = replies.values_list("seq", flat=True)
    seq = query_number(request, "reply") or numbers.last()
    if not seq:
        return {"seq": None}
    sent = request_inspector.inspect_reply(conversation, seq, rights)
    return {
        "seq": seq,
        "sent": sent,
        "previous": numbers.filter(seq__lt=seq).last(),
        "next": numbers.filter(seq__gt=seq).first(),
        "target": f"request #{seq}" if sent else "",
    }


def _show_log(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> Values:
    found = log.build_log(conversation, rights, query_number(request, "page"))
    # The notes of reviews are in it.
    return {"log": found, "target": "log"}


TABS = {
    "steps": (gettext_lazy("Versions"), _show_steps),
    "transcript": (gettext_lazy("Transcript"), _show_transcript),
    "view": (gettext_lazy("Model's view"), _show_view),
    "raw": (gettext_lazy("Raw"), _show_view),
    "log": (capfirst(gettext_lazy("log")), _show_log),
}


@review_page()
def inspect_request(
    request: HttpRequest, conversation: Conversation, rights: Rights, seq: int
) -> HttpResponse:
    rows = select_readable(conversation.messages, rights, redaction.MESSAGE)
    reply = rows.filter(seq=seq, role=Message.Role.ASSISTANT).first()
    sent = request_inspector.inspect_reply(conversation, seq, rights)
    if reply is None and sent is None:
        raise Http404(_("There is no reply with this number."))
    if rights.content:
        record_access(request, StaffAction.VIEW, conversation, f"request #{seq}")
    turns = Turn.objects.filter(conversation=conversation, reply_seq=seq)
    return render_page(
        request,
        "admin/review/timeline/request.html",
        conversation,
        _("Request for reply #%(seq)s") % {"seq": seq},
        seq=seq,
        reply=reply,
        reply_text=show_row_text(reply, rights) if reply else "",
        reply_holds=signatures.has_valid_signature(reply)
        if reply and rights.content
        else None,
        turn=turns.defer("text").last(),
        parent=reverse("admin:review-timeline", args=[conversation.pk]),
        parent_title=capfirst(_("timeline")),
        sent=sent,
    )


urlpatterns = [
    path("<int:pk>/timeline/", show_timeline, name="review-timeline"),
    path("<int:pk>/request/<int:seq>/", inspect_request, name="review-request"),
]
