"""The timeline's page with its tabs, and the page of one reply with its request."""

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.turns.models import Turn
from memory.integrity import signatures
from memory.models import Conversation, Message

from .. import access_log, redaction
from ..pages import desk_view, render
from ..rights import Rights
from . import log, picture, request_inspector, steps, transcript
from .links import timeline_url
from .reading import number, readable, text_of

Values = dict[str, Any]
Tab = Callable[[HttpRequest, Conversation, Rights], Values]


@desk_view()
def timeline(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> HttpResponse:
    name = request.GET.get("tab", "")
    name = name if name in TABS else "steps"
    title, show = TABS[name]
    values = show(request, conversation, rights)
    if rights.content and (target := values.pop("target", "")):
        access_log.record(request, access_log.Action.VIEW, conversation, target)
    return render(
        request,
        f"admin/desk/timeline/{name}.html",
        conversation,
        _("Timeline"),
        tab=name,
        tabs=_tabs(conversation),
        messages_count=max(conversation.next_seq - 1, 0),
        **values,
    )


def _tabs(conversation: Conversation) -> list[tuple[str, str, str]]:
    return [
        (name, str(title), timeline_url(conversation.pk, tab=name))
        for name, (title, _show) in TABS.items()
    ]


def _steps(request: HttpRequest, conversation: Conversation, rights: Rights) -> Values:
    wanted = number(request, "v") or number(request, "b")
    shown = steps.find(conversation, rights, wanted)
    if shown is None:
        return {"step": None, "missing": wanted, "target": ""}
    step = steps.step_of(conversation, rights, shown, number(request, "page"))
    old, new = _compared(request, step)
    target = f"timeline v{shown.version}"
    comparison = None
    if rights.content and old:
        comparison = steps.compare(conversation, old, new)
        target += f", v{old}–v{new}"
    return {
        "step": step,
        "around": steps.block_of(conversation, shown),
        "legend": picture.LEGEND,
        "compared": (old, new),
        "comparison": comparison,
        "target": target,
    }


def _compared(request: HttpRequest, step: steps.Step) -> tuple[int | None, int]:
    """Two versions, as asked for; else the shown one with the one it went on from."""
    shown = step.line.row.version
    old, new = number(request, "a"), number(request, "b")
    if not old and not new and len(step.sources) == 1 and step.pieces:
        old = step.sources[0].row.version
    return old, new or shown


def _transcript(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> Values:
    page, seq = number(request, "page"), number(request, "seq")
    if seq and not page:
        page = transcript.page_of(conversation, seq)
    found = transcript.build(conversation, rights, page)
    target = f"transcript {found.span}" if found.entries else ""
    return {"transcript": found, "wanted": seq, "target": target}


def _view(request: HttpRequest, conversation: Conversation, rights: Rights) -> Values:
    seq = number(request, "reply") or request_inspector.latest_reply(conversation)
    call = request_inspector.call_of(conversation, seq) if seq else None
    replies = conversation.messages.filter(role=Message.Role.ASSISTANT).order_by("seq")
    numbers = replies.values_list("seq", flat=True)
    return {
        "seq": seq,
        "sent": request_inspector.build(conversation, call, rights) if call else None,
        "previous": numbers.filter(seq__lt=seq).last() if seq else None,
        "next": numbers.filter(seq__gt=seq).first() if seq else None,
        "target": f"request #{seq}" if call else "",
    }


def _log(request: HttpRequest, conversation: Conversation, rights: Rights) -> Values:
    found = log.build(conversation, rights, number(request, "page"))
    # The notes of reviews stand in it.
    return {"log": found, "target": "log"}


TABS: dict[str, tuple[Any, Tab]] = {
    "steps": (gettext_lazy("Versions"), _steps),
    "transcript": (gettext_lazy("Transcript"), _transcript),
    "view": (gettext_lazy("Model's view"), _view),
    "raw": (gettext_lazy("Raw"), _view),
    "log": (gettext_lazy("Log"), _log),
}


@desk_view()
def inspect_request(
    request: HttpRequest, conversation: Conversation, rights: Rights, seq: int
) -> HttpResponse:
    rows = readable(conversation.messages, rights, redaction.MESSAGE)
    reply = rows.filter(seq=seq, role=Message.Role.ASSISTANT).first()
    call = request_inspector.call_of(conversation, seq)
    if reply is None and call is None:
        raise Http404(_("There is no reply with this number."))
    if rights.content:
        access_log.record(
            request, access_log.Action.VIEW, conversation, f"request #{seq}"
        )
    turns = Turn.objects.filter(conversation=conversation, reply_seq=seq)
    return render(
        request,
        "admin/desk/timeline/request.html",
        conversation,
        _("Request for reply #%(seq)s") % {"seq": seq},
        seq=seq,
        reply=reply,
        reply_text=text_of(reply, rights) if reply else "",
        reply_holds=signatures.holds(reply) if reply and rights.content else None,
        turn=turns.defer("text").last(),
        parent=reverse("admin:desk-timeline", args=[conversation.pk]),
        parent_title=_("Timeline"),
        sent=request_inspector.build(conversation, call, rights) if call else None,
    )
