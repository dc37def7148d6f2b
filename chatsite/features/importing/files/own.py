"""The strict reader of this site's own exports.

It refuses what an audit would report, and marks a reply that can't be proved as
imported.
"""

from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from pydantic import ValidationError

from chatsite.features.tools.results import shorten_again
from chatsite.languages import find_sentence_space
from chatsite.turns.copying.copies import TurnInfo
from memory.bundle import Bundle
from memory.engine import attachments
from memory.engine.exceptions import PolicyError
from memory.engine.file_names import clean_file_name
from memory.engine.policy import Policy
from memory.engine.wording import explain_refusal
from memory.models import ModelCall as ModelCallRow
from memory.view import rebuilding

from .. import left_out as rows_left_out
from ..tables import exported_lists, exported_values
from ..thread_format import (
    FORMAT,
    Attachment,
    CoreState,
    Message,
    ModelCall,
    ReplyReferences,
    Summary,
    SummaryReferences,
    build_thread_state,
    list_counts,
)
from .draft import Draft, check_count, check_length
from .reading import ImportItemError, check_values, explain_fault

# States of turns that may still be written.
UNFINISHED = ("queued", "running", "waiting")


def read_export(item: dict[str, Any], user_id: int) -> Draft:
    """Return the draft of an export.

    Raises ImportItemError, with the list and the number of the wrong entry.
    """
    _check_format(item["format"])
    check_values(item)
    try:
        own = build_thread_state().model_validate(item)
    except ValidationError as error:
        first = error.errors()[0]
        why = explain_refusal(first).render(_)
        raise ImportItemError(explain_fault(first["loc"], why)) from None
    # A reply that was being written is not final anywhere; what calls tools is.
    said = [
        row
        for row in own.messages
        if row.role != "assistant" or row.state not in UNFINISHED or row.tool_calls
    ]
    _check_messages(said)
    _check_summaries(own.summaries, said)
    replies = {row.seq for row in said if row.role == "assistant"}
    calls = [_read_request(row, replies) for row in own.model_calls if _is_in_form(row)]
    prompt = own.conversation.system_prompt
    if len(prompt) > settings.IMPORT_MAX_CHARS:
        raise ImportItemError(_("its system prompt is too long."))
    explained = {call["seq"] for call in calls}
    return Draft(
        source=f"windowpane:{own.conversation.uuid}",
        title=own.conversation.title,
        is_title_of_person=own.conversation.title_set_by == "user",
        title_seqs=own.conversation.title_seqs,
        bundle=Bundle(
            messages=[_read_message(row, row.seq in explained) for row in said],
            summaries=_read_summaries(own.summaries, calls, user_id),
            calls=calls,
            prompts=own.prompts,
        ),
        infos=_read_turns(said),
        sections={
            **{each.name: getattr(own, each.name) for each in exported_lists()},
            **{f.name: getattr(own.conversation, f.name) for f in exported_values()},
        },
        policy=_read_policy(own),
        model=own.conversation.model,
        temperature=own.conversation.temperature,
        # Only one of the conversation's own; the site's may change.
        system_prompt="" if prompt == settings.SYSTEM_PROMPT else prompt,
        left_out=_name_left_out(item, own),
    )


def _name_left_out(item: dict[str, Any], own: CoreState) -> str:
    """Return sentences on the lists that are not imported.

    These are lists that this site does not know, and lists that the file lacks because
    its site had their features off.
    """
    unknown = {
        name: len(rows)
        for name, rows in item.items()
        if isinstance(rows, list | dict) and rows and name not in type(own).model_fields
    }
    said = []
    if unknown:
        text = _("not imported, because this site does not have these features: %s.")
        said.append(text % list_counts(unknown))
        if off := ",".join(rows_left_out.name_extras_of(unknown)):
            text = _(
                "The administrator can turn that on (EXTRAS: %(names)s); then delete "
                "this copy, and import the file again."
            )
            said.append(text % {"names": off})
    if own.left_out:
        text = _(
            "the file does not contain what was turned off on the site that wrote "
            "it: %s."
        )
        said.append(text % list_counts(own.left_out))
    return find_sentence_space().join(said)


def _check_format(number: Any) -> None:
    if isinstance(number, int) and number > FORMAT:
        text = _(
            "it was written by a newer version of this site (format %(number)s); "
            "this one reads up to %(known)s. Update it first."
        )
        raise ImportItemError(text % {"number": str(number)[:20], "known": FORMAT})


def _check_messages(rows: list[Message]) -> None:
    if not rows:
        raise ImportItemError(_("it has no messages."))
    check_count(len(rows))
    ids = [row.client_id for row in rows if row.client_id]
    if len(set(ids)) < len(ids):
        raise ImportItemError(_("two messages have the same client_id."))
    for earlier, later in pairwise(rows):
        if later.seq <= earlier.seq:
            raise _bad_message(later, _("its number is not above the one before."))
    for row in rows:
        check_length(row.seq, row.text, row.role)
        check_length(row.seq, row.sent_text)
        if not _has_attachments_in_order(row):
            raise _bad_message(row, _("its attachments are not in its text."))
    _check_replies(rows)


def _has_attachments_in_order(row: Message) -> bool:
    """Return whether the attachments are one after the other in the text."""
    places = [p for each in row.attachments for p in (each.at, each.start, each.end)]
    is_in = not places or places[-1] <= len(row.text) or bool(row.deleted_at)
    return is_in and places == sorted(places)


def _check_replies(rows: list[Message]) -> None:
    """Check that each message has one reply in force, behind its tool calls.

    No reply comes without a message, and no result without a call. Only imported
    messages, such as those of another client, can have them in any order.
    """
    if any(row.imported_at for row in rows):
        return
    answered, asked = True, set()
    for row in rows:
        asked |= {call.id for call in row.tool_calls}
        if row.role == "user":
            answered = False
        elif row.role == "tool":
            if row.tool_call_id not in asked:
                raise _bad_message(row, _("it answers no tool call."))
            # A late result can have a turn, and so a reply, of its own.
            answered = answered and row.late_for is None
        elif not (row.superseded or row.superseded_at):
            if answered:
                raise _bad_message(row, _("it answers no message of its own."))
            answered = not row.tool_calls


def _bad_message(row: Message, why: str) -> ImportItemError:
    return ImportItemError(_("message %(seq)s: %(why)s") % {"seq": row.seq, "why": why})


def _check_summaries(rows: list[Summary], said: list[Message]) -> None:
    versions = [row.version for row in rows]
    if len(set(versions)) < len(versions):
        raise ImportItemError(_("two summaries have the same version."))
    free = 1
    for row in sorted(rows, key=lambda row: row.first_seq):
        if why := _find_fault_of(row, rows, said[-1].seq, free):
            text = _("summary version %(version)s: %(why)s")
            raise ImportItemError(text % {"version": row.version, "why": why})
        free = row.last_seq + 1 if row.status == "active" else free


def _find_fault_of(row: Summary, rows: list[Summary], last: int, free: int) -> str:
    if not row.first_seq <= row.last_seq <= last:
        return _("it covers messages that are not there.")
    if row.status == "active" and row.first_seq != free:
        return _("the current summaries leave a message out, or cover one twice.")
    # One that no model wrote says that its messages have left the window.
    is_used = row.status in ("active", "superseded")
    is_wrong = is_used and bool(row.error or (row.model and not row.text))
    is_wrong |= not is_used and row.status != "stale" and bool(row.text)
    if is_wrong or row.status == "erased" and (row.structured or row.flags):
        return _("its text does not fit its status.")
    check_length(row.last_seq, row.text)
    known = {other.version: other for other in rows}
    for version in row.folded_from:
        source = known.get(version)
        if source is None or not _is_source_of(source, row):
            return _("it can't be based on version %(version)s.") % {"version": version}
    return ""


def _is_source_of(source: Summary, made: Summary) -> bool:
    covered = made.first_seq <= source.first_seq and source.last_seq <= made.last_seq
    return covered and source.version < made.version


def _is_in_form(row: ModelCall) -> bool:
    """Return whether its references have the form of requests of its purpose.

    Requests that no site composed can't be proved by a file and are not read at all: a
    few numbers in them can ask for any amount of memory.
    """
    if rebuilding.EXTERNAL & row.refs.keys():
        return False
    is_composed = row.purpose in ModelCallRow.COMPOSED
    try:
        (ReplyReferences if is_composed else SummaryReferences).model_validate(row.refs)
    except ValidationError:
        return False
    return True


def _read_request(row: ModelCall, replies: set[int]) -> dict[str, Any]:
    """Return a request with the reply or summary that it made, if the file has that."""
    is_reply = row.purpose == "reply" and row.message__seq in replies
    return {
        **row.model_dump(exclude={"message__seq", "summary__version"}),
        "seq": row.message__seq if is_reply else None,
        "version": row.summary__version if row.purpose == "summary" else None,
    }


def _read_message(row: Message, explained: bool) -> dict[str, Any]:
    is_reply = row.role == "assistant"
    written = row.created_at or timezone.now()

    def mark(flag: bool, at: datetime | None) -> datetime | None:
        return at or (written if flag else None)

    deleted_at = mark(row.deleted, row.deleted_at)
    files = [] if deleted_at else _list_attached_files(row)
    is_shortened = row.role == "tool" or bool(row.role == "user" and files)
    return {
        "seq": row.seq,
        "role": row.role,
        "text": "" if deleted_at else row.text,
        "sent_text": _read_sent_text(row) if is_shortened and not deleted_at else "",
        "attachments": [
            {**each.model_dump(exclude_none=True), "name": clean_file_name(each.name)}
            for each in files
        ],
        "reasoning": "" if deleted_at or not is_reply else row.reasoning,
        "tool_calls": [call.model_dump(exclude_unset=True) for call in row.tool_calls],
        "extras": row.extras if row.tool_calls and not deleted_at else {},
        "tool_call_id": row.tool_call_id,
        "late_for": row.late_for if row.role == "tool" else None,
        "client_id": row.client_id,
        "created_at": written,
        "pinned_at": mark(row.pinned, row.pinned_at),
        "excluded_at": mark(row.excluded, row.excluded_at),
        "superseded_at": mark(row.superseded, row.superseded_at),
        "deleted_at": deleted_at,
        "imported_at": timezone.now() if is_reply and not explained else None,
    }


def _list_attached_files(row: Message) -> list[Attachment]:
    """People attach files; replies that another chat has made can have images."""
    if row.role == "assistant":
        return row.attachments if all(each.image for each in row.attachments) else []
    return row.attachments if row.role == "user" else []


def _read_sent_text(row: Message) -> str:
    """Return the text that models get instead, if it is a part of the text.

    A file can say anything, and the page shows the text: other words are not taken, and
    requests that had them are not proved.
    """
    if not row.sent_text:
        return ""
    if row.role == "tool":
        return shorten_again(row.text, row.sent_text, row.seq)
    places = [each.model_dump() for each in row.attachments]
    if attachments.is_shortened(row.text, places, row.sent_text):
        return row.sent_text
    room = settings.ATTACHMENT_TOKENS
    return attachments.shorten_attachments(row.text, places, room=room, seq=row.seq)


def _read_summaries(
    rows: list[Summary], calls: list[dict[str, Any]], user_id: int
) -> list[dict[str, Any]]:
    """Return the summaries.

    The first one in force without an author or a request is stale, and so are all later
    ones.
    """
    answered = {call["version"] for call in calls if not call["error"]}
    made, trusted = [], True
    for row in sorted(rows, key=lambda row: row.first_seq):
        values = row.model_dump(exclude={"author"})
        if row.status == "active":
            is_trimmed = not row.text
            is_known = bool(is_trimmed or row.author or row.version in answered)
            trusted = trusted and is_known
            values["status"] = "active" if trusted else "stale"
        values["author_id"] = user_id if row.author else None
        made.append(values)
    return made


def _read_turns(said: list[Message]) -> dict[int, TurnInfo]:
    """Return the states of turns, which every message of the file carries.

    A reply that answers no message has a turn of its own.
    """
    infos, user, answered = {}, None, True
    for before, row in pairwise([None, *said]):
        has_turn = row.late_for and before and row.turn != before.turn
        is_asked = row.role == "user" or has_turn
        is_final = row.role == "assistant" and not (
            row.tool_calls or row.superseded or row.superseded_at or row.deleted
        )
        if is_asked or (is_final and answered):
            user = row
            infos[row.seq] = TurnInfo(
                state=row.state,
                error=row.error,
                model=row.model,
                finished_at=row.created_at,
            )
        elif row.role == "assistant" and user:
            info = infos[user.seq]
            infos[user.seq] = replace(
                info, model=info.model or row.model, finished_at=row.created_at
            )
        answered = is_final or (answered and not is_asked)
    return infos


def _read_policy(own: CoreState) -> dict[str, Any]:
    """Return the conversation's policy, or if invalid the one in force."""
    value, in_force = own.conversation.own_policy, own.conversation.policy
    for each in (in_force if value is None else value, in_force):
        try:
            Policy.load(each)
            return each
        except PolicyError as error:
            why = error.render(_)
    text = _("its memory settings are not valid: %(why)s")
    raise ImportItemError(text % {"why": why})
