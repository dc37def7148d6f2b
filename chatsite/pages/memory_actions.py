"""Actions on the memory from the page.

Each answers with a notice that offers to undo it; the panes of every tab redraw
themselves on the event that it publishes.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_htmx.http import reswap, retarget

from chatsite.accounts.access import conversation_view
from chatsite.jobs import summary_proposals
from chatsite.llm import providers
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError, explain_code
from chatsite.turns import commands, lifecycle, limits, model_access, runner
from chatsite.turns.requests import model_of, name_to_store
from memory import actions, context, transcript, versions
from memory.compaction import lease, proposals
from memory.engine.exceptions import PolicyError
from memory.models import Change, Conversation, Summary

from .forms import PolicyForm, TemperatureField, UndoPolicyForm, name_error, preset_name
from .list_views import retry_later
from .views import context_values

Action = Change.Action
# What the log says of a view whose address does not name it.
CHANGES = {
    "accept_as_owner": Action.ACCEPT,
    "rebuild_as_owner": Action.REBUILD,
    "reinstate_as_owner": Action.REINSTATE,
    "restore_as_owner": Action.RESTORE,
    "rewrite_as_owner": Action.REWRITE,
    "post_model": Action.MODEL,
    "post_system_prompt": Action.SYSTEM_PROMPT,
    "set_tools": Action.TOOLS,
    "undo_policy": Action.POLICY,
}

# Of a form, what its question answers or has of its own.
NOT_SENT_AGAIN = ("edited", "made", "csrfmiddlewaretoken")


@dataclass(frozen=True, slots=True)
class Notice:
    """The notice of an action: what it did, in words, and the form that undoes it."""

    text: str
    undo: str = ""  # an address
    values: dict[str, str] = field(default_factory=dict)
    also: str = ""  # the address that hides the reply, too
    edited: str = ""  # what they have answered
    is_error: bool = False
    # The version that has replaced the one that was to be rewritten.
    replaced_by: int | None = None


def memory_action(view: Callable[..., Notice]) -> Callable[..., HttpResponse]:
    """Make a view that changes the memory and answers what it did, or why not."""

    @conversation_view("POST")
    @wraps(view)
    def acted(
        request: HttpRequest, conversation: Conversation, **kwargs: Any
    ) -> HttpResponse:
        try:
            notice = view(request, conversation, **kwargs)
            action = kwargs.pop("name", "") or CHANGES[view.__name__]
            kwargs.pop("pk", None)
            conversation.changes.create(action=action, **kwargs)
        except actions.EditedError as error:
            return _ask_about_edited(request, conversation, error, kwargs)
        except (actions.ActionError, transcript.TextError) as error:
            by = getattr(error, "by", None)
            notice = Notice(str(error), is_error=True, replaced_by=by)
        except CommandError as error:
            return _refuse_action(request, conversation, error)
        else:
            async_to_sync(events.publish_change)(conversation.pk)
        return answer_notice(request, conversation, notice)

    return acted


def _refuse_action(
    request: HttpRequest, conversation: Conversation, error: CommandError
) -> HttpResponse:
    """Answer that the user's limits do not allow the action now."""
    if request.htmx:
        return answer_notice(request, conversation, Notice(error.detail, is_error=True))
    return retry_later(HttpResponse(error.detail, content_type="text/plain"), error)


def _ask_about_edited(
    request: HttpRequest,
    conversation: Conversation,
    error: actions.EditedError,
    named: dict[str, Any],
) -> HttpResponse:
    """Ask in a dialog what becomes of summaries that a user wrote; nothing was done."""
    if not request.htmx:
        choice = _("Send “edited” with “keep” or “write”.")
        return HttpResponse(f"{error} {choice}", status=409, content_type="text/plain")
    sent = {
        key: value for key, value in request.POST.items() if key not in NOT_SENT_AGAIN
    }
    is_elsewhere = error.summaries[0].conversation_id != conversation.pk
    values = {"text": str(error), "sent": sent, "is_elsewhere": is_elsewhere, **named}
    shown = render(request, "chat/_edited_question.html", values)
    return reswap(retarget(shown, "#dialog-body"), "innerHTML")


def answer_notice(
    request: HttpRequest, conversation: Conversation, notice: Notice
) -> HttpResponse:
    """Render the notice for htmx, whatever the target of its request is.

    Others get an error as plain text, or are led to the conversation.
    """
    if not request.htmx and notice.is_error:
        return HttpResponse(notice.text, status=409, content_type="text/plain")
    if not request.htmx:
        return redirect("conversation-detail", conversation.uuid)
    values = {"conversation": conversation, "notice": notice}
    shown = render(request, "chat/_notice.html", values)
    if request.htmx.target == "notice":
        # htmx would look for a target that is named here from the button that was
        # pressed on, which may be out of the page: its message has been drawn again.
        return shown
    return reswap(retarget(shown, "#notice"), "innerHTML")


def address_of(conversation: Conversation, view: str, **kwargs: Any) -> str:
    return reverse(f"memory-{view}", kwargs={"uuid": conversation.uuid, **kwargs})


# Name in the address -> what to do, what to say then, the name of what undoes it.
MESSAGE_ACTIONS = {
    "pin": (
        lambda conversation, seq, **_: actions.pin_message(conversation, seq),
        gettext_lazy("Message #%(seq)s is pinned: it is always sent in full."),
        "unpin",
    ),
    "unpin": (
        lambda conversation, seq, **_: actions.unpin_message(conversation, seq),
        gettext_lazy("Message #%(seq)s is no longer pinned."),
        "pin",
    ),
    "leave-out": (
        commands.hide_message,
        gettext_lazy("The model no longer sees message #%(seq)s."),
        "bring-back",
    ),
    "bring-back": (
        lambda row, seq, **options: actions.include_messages(row, [seq], **options),
        gettext_lazy("The model sees message #%(seq)s again."),
        "leave-out",
    ),
    "delete": (
        commands.delete_message,
        gettext_lazy("Message #%(seq)s was deleted."),
        "",
    ),
}


@memory_action
def change_message(
    request: HttpRequest, conversation: Conversation, *, seq: int, name: str
) -> Notice:
    if name not in MESSAGE_ACTIONS:
        raise Http404
    do, done, opposite = MESSAGE_ACTIONS[name]
    edited = _read_edited(request)
    with transaction.atomic():
        before = versions.active_summaries(conversation)
        seen = versions.digest_view(conversation, versions.last_covered(before))
        wanted = _read_versions(request.POST.get("versions", ""))
        made = _read_made(request)
        by_hand = versions.by_hand(conversation, seq, seq) if made is not None else ()
        # A user has written another summary of the message meanwhile.
        if {row.version for row in by_hand}.difference(wanted, made or ()):
            edited = actions.EditChoice.ASK
        do(conversation, seq, edited=edited)
        is_undone = False
        if wanted and edited != actions.EditChoice.KEEP:
            seen_before = request.POST.get("seen", "")
            is_undone = actions.put_back_versions(
                conversation, wanted, seen_before, made
            )
    text = str(done) % {"seq": seq}
    values = {}
    if (now := versions.active_summaries(conversation)) != before:
        # With these, Undo puts the same versions in force again.
        numbers = _write_versions(row.version for row in before)
        values = {"versions": numbers, "seen": seen, "edited": actions.EditChoice.WRITE}
        values["made"] = _write_versions(row.version for row in now)
        text = _what_became(text, before, now, is_undone=is_undone)
    undo = opposite and address_of(conversation, "message", seq=seq, name=opposite)
    reply = _shown_reply(conversation, seq) if name == "leave-out" else None
    also = reply and address_of(conversation, "message", seq=reply, name=name)
    return Notice(text, undo, values, also=also or "", edited=edited)


def _read_edited(request: HttpRequest) -> actions.EditChoice:
    try:
        return actions.EditChoice(request.POST.get("edited", actions.EditChoice.ASK))
    except ValueError:
        text = _("“edited” must be one of: %(values)s.")
        names = ", ".join(actions.EditChoice)
        raise actions.ActionError(text % {"values": names}) from None


def _what_became(
    done: str, before: list[Summary], now: list[Summary], *, is_undone: bool
) -> str:
    """Return what was done, and what became of the summaries."""
    if is_undone:
        text = _("%(done)s Its summary was restored.")
    elif kept := [row for row in now if row.is_by_hand and row not in before]:
        names = ", ".join(f"v{row.version}" for row in kept)
        text = _("%(done)s Your summary stays, as %(versions)s.")
        return text % {"done": done, "versions": names}
    else:
        text = _("%(done)s Its summary is being written again.")
    return text % {"done": done}


def _shown_reply(conversation: Conversation, seq: int) -> int | None:
    """Return the number of the reply to a message, if the model sees it.

    The reply may repeat what the message said.
    """
    seen = context.visible_messages(conversation).filter(turn__user_message__seq=seq)
    return seen.values_list("seq", flat=True).first()


def _in_force(conversation: Conversation) -> list[int]:
    return [summary.version for summary in versions.active_summaries(conversation)]


def version_action(view: Callable[..., str]) -> Callable[..., HttpResponse]:
    """Make a memory action whose undo puts the versions before it in force again."""

    @memory_action
    @wraps(view)
    def acted(
        request: HttpRequest, conversation: Conversation, **kwargs: Any
    ) -> Notice:
        values = {"versions": _write_versions(_in_force(conversation))}
        text = view(request, conversation, **kwargs)
        values["made"] = _write_versions(_in_force(conversation))
        return Notice(text, address_of(conversation, "reinstate"), values)

    return acted


def _write_versions(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _read_versions(text: str) -> list[int]:
    parts = [part for part in text.split(",") if part]
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise actions.ActionError(_("The versions must be numbers."))
    return [int(part) for part in parts]


def _read_made(request: HttpRequest) -> list[int] | None:
    """Return the versions that the undone action made; None if the form lacks them."""
    made = request.POST.get("made")
    return None if made is None else _read_versions(made)


@version_action
def reinstate_as_owner(request: HttpRequest, conversation: Conversation) -> str:
    """Undo: the versions named are in force again."""
    wanted = _read_versions(request.POST.get("versions", ""))
    made = _read_made(request)
    actions.reinstate_versions(conversation, wanted, author=request.user, made=made)
    return _("Undone.")


@version_action
def restore_as_owner(
    request: HttpRequest, conversation: Conversation, *, version: int
) -> str:
    new = actions.restore_version(
        conversation,
        version,
        author=request.user,
        may_be_stale=True,
        edited=_read_edited(request),
    )
    text = _("Version %(old)s was restored as v%(new)s.")
    return text % {"old": version, "new": new.version}


@version_action
def rewrite_as_owner(
    request: HttpRequest, conversation: Conversation, *, version: int
) -> str:
    # After the notice that another version has replaced it, the text can be sent again.
    seen = (_read_versions(request.POST.get("seen", "")) or [version])[0]
    new = actions.rewrite_summary(
        conversation, seen, request.POST.get("text"), author=request.user
    )
    text = _("Saved as v%(new)s. The model now reads your version.")
    return text % {"new": new.version}


@version_action
def rebuild_as_owner(request: HttpRequest, conversation: Conversation) -> str:
    limits.admit_spending(conversation.owner_id)
    actions.rebuild_memory(conversation)
    async_to_sync(runner.compact_soon)(conversation.pk)
    return _("The summaries were cleared. New ones are written when needed.")


@version_action
def accept_as_owner(request: HttpRequest, conversation: Conversation) -> str:
    """Compact as previewed, with the text of the box."""
    new = proposals.accept_proposal(
        conversation,
        request.POST.get("signature", ""),
        request.POST.get("text"),
        author=request.user,
        open_from=lifecycle.open_from,
    )
    summary_proposals.drop_proposal(conversation)
    text = _("Messages #%(first)s–#%(last)s were summarised (v%(version)s).")
    values = {"first": new.first_seq, "last": new.last_seq, "version": new.version}
    return text % values


@memory_action
def post_system_prompt(request: HttpRequest, conversation: Conversation) -> Notice:
    """Save the system prompt; the temperature, too, if the same form changed it."""
    before, temperature = conversation.system_prompt, conversation.temperature
    # Browsers send every line break as two characters.
    seen = request.POST.get("seen", before).replace("\r\n", "\n")
    with transaction.atomic():
        actions.set_system_prompt(conversation, request.POST.get("text"), seen=seen)
        given = request.POST.get("temperature")
        if given not in (None, request.POST.get("seen_temperature")):
            actions.set_temperature(conversation, _read_temperature(given))
    text = _("System prompt saved. The model reads it from the next message on.")
    if conversation.system_prompt == before:
        text = _("Saved. It applies from the next message on.")
    elif not conversation.system_prompt:
        text = _("The site's own system prompt is sent from the next message on.")
    values = {
        "text": before,
        "seen": conversation.system_prompt,
        "temperature": _write_temperature(temperature),
        "seen_temperature": _write_temperature(conversation.temperature),
    }
    return Notice(text, address_of(conversation, "set-system-prompt"), values)


def _write_temperature(temperature: float | None) -> str:
    return "" if temperature is None else str(temperature)


def _read_temperature(given: str) -> float | None:
    field = TemperatureField()
    try:
        return field.clean(given)
    except ValidationError as error:
        why = name_error(field.label, error.messages[0])
        raise actions.ActionError(why) from error


@memory_action
def post_model(request: HttpRequest, conversation: Conversation) -> Notice:
    """Another model for the replies that follow."""
    before, name = model_of(conversation), request.POST.get("model", "")
    owner = conversation.owner_id
    if model_access.find_model_refusal(owner, name) == model_access.OFF:
        raise actions.ActionError(explain_code(model_access.OFF))
    is_listed = name in (before, *model_access.list_models_for(owner))
    if not is_listed or not model_access.may_use(owner, name):
        raise actions.ActionError(_("This site does not offer that model."))
    actions.set_model(conversation, name_to_store(name))
    text = _("%(model)s writes the replies from now on.")
    undo = reverse("conversation-model", args=[conversation.uuid])
    return Notice(text % {"model": providers.name_model(name)}, undo, {"model": before})


@conversation_view("POST")
def retry_compaction(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Let the compaction job try again after it had given up."""
    try:
        limits.admit_spending(conversation.owner_id)
    except CommandError as error:
        return _refuse_action(request, conversation, error)
    lease.reset_back_off(conversation)
    conversation.changes.create(action=Action.SUMMARISE)
    async_to_sync(runner.compact_soon)(conversation.pk)
    if request.htmx:
        conversation.refresh_from_db()
        values = context_values(request, conversation)
        return render(request, "chat/_context.html", values)
    return redirect("conversation-detail", conversation.uuid)


@conversation_view("POST")
def post_policy(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Change the memory settings; what was typed stays when it is wrong."""
    form = PolicyForm(request.POST)
    if form.is_valid():
        try:
            notice = _set_policy(conversation, form.cleaned_data)
        except actions.ActionError as error:
            form = form.seen_again(conversation, str(error))
        else:
            conversation.changes.create(action=Action.POLICY)
            async_to_sync(events.publish_change)(conversation.pk)
            return answer_notice(request, conversation, notice)
    values = {"conversation": conversation, "policy_form": form}
    # htmx swaps in nothing that came with an error.
    status = 200 if request.htmx else 422
    return render(request, "chat/_policy.html", values, status=status)


@memory_action
def undo_policy(request: HttpRequest, conversation: Conversation) -> Notice:
    """Restore the settings before a change, unless they were changed since."""
    form = UndoPolicyForm(request.POST)
    if not form.is_valid():
        raise actions.ActionError(_("These settings can't be restored."))
    try:
        return _set_policy(conversation, form.cleaned_data)
    except PolicyError as error:
        raise actions.ActionError(error.render(_)) from error


def _set_policy(conversation: Conversation, cleaned: dict[str, Any]) -> Notice:
    before = conversation.policy
    actions.set_policy(conversation, cleaned["policy"], seen=cleaned["seen"])
    async_to_sync(runner.compact_soon)(conversation.pk)
    preset = preset_name(conversation.get_policy().preset)
    undo = reverse("conversation-policy-undo", args=[conversation.uuid])
    values = {"policy": json.dumps(before), "seen": json.dumps(conversation.policy)}
    return Notice(_("Memory is now “%(preset)s”.") % {"preset": preset}, undo, values)
