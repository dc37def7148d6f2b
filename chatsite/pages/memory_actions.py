"""Acts on the model's view from the page: each answers with a notice that offers to
undo it; the panes of every tab redraw themselves on the event that it publishes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from math import ceil
from typing import Any

from asgiref.sync import async_to_sync
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST
from django_htmx.http import reswap, retarget

from chatsite.accounts.access import private, with_conversation
from chatsite.jobs import summary_proposals
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import lifecycle, limits, runner
from chatsite.turns.models import Turn
from memory import actions, transcript, versions
from memory.compaction import proposals
from memory.models import Conversation


@dataclass(frozen=True, slots=True)
class Notice:
    """What an act has done, in words, and the form that undoes it."""

    text: str
    undo: str = ""  # an address
    values: dict[str, str] = field(default_factory=dict)
    is_error: bool = False
    # The version that has taken the place of the one that was to be rewritten.
    replaced_by: int | None = None


@dataclass(frozen=True, slots=True)
class MessageAct:
    do: Callable[[Conversation, int], None]
    done: str
    opposite: str = ""


def _delete(conversation: Conversation, seq: int) -> None:
    """The text is gone from the turn that wrote it, too, and no turn answers it."""
    with transaction.atomic():
        actions.delete(conversation, seq)
        conversation.turns.filter(reply__seq=seq).update(text="")
        cancelled = lifecycle.cancel_unanswerable(conversation)
        summary_proposals.drop(conversation)
    before = conversation.title
    conversation.refresh_from_db(fields=["title", "title_set_by"])
    if conversation.title != before:
        _tell(conversation, events.Title(conversation.title))
    for turn in Turn.objects.select_related("reply").filter(pk__in=cancelled):
        if turn.is_finished:
            _tell(conversation, events.End.of(turn))
        else:
            async_to_sync(events.hint_stop)(turn.pk)


def _tell(conversation: Conversation, event: events.Event) -> None:
    async_to_sync(events.publish)(conversation.pk, event)


MESSAGE_ACTS = {
    "pin": MessageAct(
        actions.pin,
        gettext_lazy("Message #%(seq)s will always be sent in full."),
        "unpin",
    ),
    "unpin": MessageAct(
        actions.unpin, gettext_lazy("Message #%(seq)s is no longer pinned."), "pin"
    ),
    "leave-out": MessageAct(
        lambda conversation, seq: actions.exclude(conversation, [seq]),
        gettext_lazy("The model no longer sees message #%(seq)s."),
        "bring-back",
    ),
    "bring-back": MessageAct(
        lambda conversation, seq: actions.include(conversation, [seq]),
        gettext_lazy("The model sees message #%(seq)s again."),
        "leave-out",
    ),
    "delete": MessageAct(_delete, gettext_lazy("Message #%(seq)s was deleted.")),
}


def act(view: Callable[..., Notice]) -> Callable[..., HttpResponse]:
    """A view that changes the model's view and says what it did, or why it did not."""

    @require_POST
    @private
    @with_conversation
    @wraps(view)
    def acted(
        request: HttpRequest, conversation: Conversation, **kwargs: Any
    ) -> HttpResponse:
        try:
            notice = view(request, conversation, **kwargs)
        except (actions.ActionError, transcript.TextError) as error:
            by = getattr(error, "by", None)
            notice = Notice(str(error), is_error=True, replaced_by=by)
            return _answer(request, conversation, notice)
        except CommandError as error:
            return refuse(request, conversation, error)
        _tell(conversation, events.Memory(None, "changed"))
        return _answer(request, conversation, notice)

    return acted


def _answer(
    request: HttpRequest, conversation: Conversation, notice: Notice
) -> HttpResponse:
    if request.htmx:
        values = {"conversation": conversation, "notice": notice}
        return render(request, "chat/_notice.html", values)
    if notice.is_error:
        return HttpResponse(notice.text, status=409, content_type="text/plain")
    return redirect("conversation-detail", conversation.uuid)


def refuse(
    request: HttpRequest, conversation: Conversation, error: CommandError
) -> HttpResponse:
    """What the person's limits do not allow now, as a notice, wherever it was asked."""
    if request.htmx:
        notice = Notice(error.detail, is_error=True)
        values = {"conversation": conversation, "notice": notice}
        shown = render(request, "chat/_notice.html", values)
        return reswap(retarget(shown, "#notice"), "innerHTML")
    response = HttpResponse(error.detail, status=429, content_type="text/plain")
    response["Retry-After"] = str(ceil(error.retry_after or 1))
    return response


def _address(conversation: Conversation, view: str, **kwargs: Any) -> str:
    return reverse(f"memory-{view}", kwargs={"uuid": conversation.uuid, **kwargs})


def _undo_to(conversation: Conversation, before: list[int]) -> dict[str, Any]:
    return {
        "undo": _address(conversation, "reinstate"),
        "values": {"versions": ",".join(map(str, before))},
    }


def _in_force(conversation: Conversation) -> list[int]:
    return [summary.version for summary in versions.active(conversation)]


@act
def message(
    request: HttpRequest, conversation: Conversation, *, seq: int, name: str
) -> Notice:
    chosen = MESSAGE_ACTS.get(name)
    if chosen is None:
        raise Http404
    chosen.do(conversation, seq)
    text = str(chosen.done) % {"seq": seq}
    if not chosen.opposite:
        return Notice(text)
    undo = _address(conversation, "message", seq=seq, name=chosen.opposite)
    return Notice(text, undo)


@act
def reinstate(request: HttpRequest, conversation: Conversation) -> Notice:
    """Undo: the versions named are in force again."""
    wanted = _numbers(request.POST.get("versions", ""))
    before = _in_force(conversation)
    actions.reinstate(conversation, wanted, author=request.user)
    return Notice(_("Undone."), **_undo_to(conversation, before))


def _numbers(text: str) -> list[int]:
    parts = [part for part in text.split(",") if part]
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise actions.ActionError(_("The versions must be numbers."))
    return [int(part) for part in parts]


@act
def restore(
    request: HttpRequest, conversation: Conversation, *, version: int
) -> Notice:
    before = _in_force(conversation)
    new = actions.restore(conversation, version, author=request.user)
    text = _("Version %(old)s was restored as v%(new)s.")
    return Notice(
        text % {"old": version, "new": new.version}, **_undo_to(conversation, before)
    )


@act
def rewrite(
    request: HttpRequest, conversation: Conversation, *, version: int
) -> Notice:
    before = _in_force(conversation)
    text = request.POST.get("text")
    # Told that another version has taken its place, a person can send it once more.
    seen = (_numbers(request.POST.get("seen", "")) or [version])[0]
    new = actions.rewrite(conversation, seen, text, author=request.user)
    text = _("Saved as v%(new)s. The model now reads your version.") % {
        "new": new.version
    }
    return Notice(text, **_undo_to(conversation, before))


@act
def rebuild(request: HttpRequest, conversation: Conversation) -> Notice:
    limits.admit_spending(conversation.owner_id)
    before = _in_force(conversation)
    actions.rebuild(conversation)
    async_to_sync(runner.compact_soon)(conversation.pk)
    text = _("Summaries cleared. New ones will be written when needed.")
    return Notice(text, **_undo_to(conversation, before))


@act
def accept(request: HttpRequest, conversation: Conversation) -> Notice:
    """Compact as previewed, with the text of the box."""
    before = _in_force(conversation)
    new = proposals.accept(
        conversation,
        request.POST.get("signature", ""),
        request.POST.get("text"),
        author=request.user,
        open_from=lifecycle.open_from,
    )
    summary_proposals.drop(conversation)
    text = _("Messages #%(first)s–#%(last)s were summarised (v%(version)s).") % {
        "first": new.first_seq,
        "last": new.last_seq,
        "version": new.version,
    }
    return Notice(text, **_undo_to(conversation, before))
