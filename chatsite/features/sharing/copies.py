"""Copies of the moment that a link shows, for readers to try.

A copy has the texts that the page shows and nothing else of the conversation: no file,
tool call, rule, fact, setting or request.
"""

from django import forms
from django.contrib.auth.base_user import AbstractBaseUser
from django.utils.translation import gettext_lazy

from chatsite.turns.copying import copies
from memory import bundle, transcript
from memory.compaction import lease
from memory.models import Conversation, Message, Summary

from .link_contents import shown_messages, title_of_share
from .models import Share
from .presenter import SharedContext, shown_text_of, without_long_texts

# The latest messages of the moment; a copy is one short transaction.
MOST_MESSAGES = 200
SUMMARY_FIELDS = ("level", "generation", "first_seq", "last_seq", "text", "model")


def make_copy_field() -> forms.BooleanField:
    label = gettext_lazy("Readers may try it on a copy")
    text = gettext_lazy("A reader's copy stays if you end the link or delete messages.")
    return forms.BooleanField(label=label, help_text=text, required=False)


def copy_moment(
    share: Share, seen: SharedContext, owner: AbstractBaseUser, **values: object
) -> Conversation:
    """Return a copy for `owner` of the moment, which the link shows in full.

    `values`: columns of the new conversation. Call it in a transaction.
    """
    made = transcript.create_conversation(owner, title=title_of_share(share), **values)
    rows = bundle.Bundle(
        _copy_messages(share, seen.reply), _copy_summaries(share, seen)
    )
    copies.write_turns(made, bundle.write_bundle(made, rows), {})
    lease.mark_due(made.pk)
    return made


def _copy_messages(share: Share, last: int) -> list[bundle.Values]:
    """Return the texts of the page as messages whose requests are unknown."""
    rows = shown_messages(share).filter(seq__lte=last, tool_calls=[])
    rows = rows.exclude(role=Message.Role.TOOL).order_by("-seq")[:MOST_MESSAGES]
    read = ((shown_text_of(row), row) for row in reversed(without_long_texts(rows)))
    return [
        {name: getattr(row, name) for name in ("seq", "role", "created_at")}
        | {"text": text, "imported_at": row.created_at}
        for text, row in read
        if text
    ]


def _copy_summaries(share: Share, seen: SharedContext) -> list[bundle.Values]:
    """Return the summaries that the page shows, if they cover all from message 1 on."""
    sent = seen.call.refs["summaries"]
    rows = share.conversation.summaries.filter(version__in=sent).order_by("first_seq")
    # As restored versions, they have words that were written before.
    own = {"status": Summary.Status.ACTIVE, "trigger": {"kind": "restore"}}
    found, end = [], 0
    for version, row in enumerate(rows.values(*SUMMARY_FIELDS), 1):
        if row["first_seq"] != end + 1:
            return []
        end = row["last_seq"]
        found.append({**row, **own, "version": version})
    return found
