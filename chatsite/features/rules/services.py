"""The decisions of users about rules."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.features.statements.edits import StatementEdit
from chatsite.features.statements.rows import check_words
from memory import context, transcript
from memory.engine.rules import choice, detection
from memory.models import Conversation
from memory.transcript import ActionError

from .models import Rule
from .store import (
    MOST_CONFIRMED,
    bound_rules,
    list_standing_rules,
    replace_older_rules,
    with_rule_words,
)

# In the log of what the owner has done.
ACTIONS = {
    "keep": gettext_lazy("kept a rule"),
    "reword": gettext_lazy("reworded a rule"),
    "dismiss": gettext_lazy("removed a rule"),
    "decline": gettext_lazy("declined a rule"),
    "offer": gettext_lazy("asked to be offered a rule again"),
    "unconfirm": gettext_lazy("no longer confirmed a rule"),
    "replace": gettext_lazy("replaced a rule"),
}
# Those after which the model reads something else.
CHANGING = ("keep", "reword", "dismiss", "unconfirm", "replace")


@transaction.atomic
def confirm_rule(
    conversation: Conversation, pk: int, *, room: int, text: object = None
) -> Rule:
    """Send a rule with every request from now on: as it was stated, or as `text`.

    Earlier rules that it contradicts are replaced. Raises ActionError if there is no
    such rule or no room for it, which is `room` tokens for all confirmed ones;
    TextError if the text can't be stored.
    """
    rule = _lock_rule(conversation, pk)
    if text is not None:
        text = check_words(text, detection.MAX_CHARS)
        if text != rule.words:
            rule.text, rule.created_at = text, timezone.now()
    rule.state, rule.replaced_by = Rule.State.CONFIRMED, None
    rule.save()
    said = rule.text or rule.words
    replace_older_rules(conversation, [said], before=rule.seq, by=rule)
    bound_rules(conversation)
    _check_room(conversation, room)
    return rule


def _check_room(conversation: Conversation, room: int) -> None:
    confirmed = [r for r in list_standing_rules(conversation) if r.is_confirmed]
    count = choice.make_rule_counter(context.conversation_counter(conversation))
    tokens = sum(count(each.block) for each in confirmed)
    if len(confirmed) > MOST_CONFIRMED or tokens > room:
        raise ActionError(
            _("There is no room for another rule. Remove a rule on the right first.")
        )


@transaction.atomic
def reword_rule(
    conversation: Conversation, pk: int, *, room: int, text: str = "", undo: str = ""
) -> str:
    """Confirm a rule as `text`, or undo that. Return what undoes it, signed.

    That is each row that changed, as it was: the rule and those that it replaces.
    """
    transcript.lock_for_update(conversation)
    edit = StatementEdit(conversation.rules.all(), "created_at", conversation.uuid)
    if undo:
        edit.restore_rows(undo)
        bound_rules(conversation)
        _check_room(conversation, room)
    else:
        confirm_rule(conversation, pk, room=room, text=text)
    return edit.sign_undo()


@transaction.atomic
def set_rule(conversation: Conversation, pk: int, state: str) -> Rule:
    """Dismiss a rule, or offer it again. Raises ActionError when there is none."""
    rule = _lock_rule(conversation, pk)
    rule.state, rule.replaced_by = state, None
    rule.save(update_fields=["state", "replaced_by"])
    bound_rules(conversation)
    return rule


def _lock_rule(conversation: Conversation, pk: int) -> Rule:
    transcript.lock_for_update(conversation)
    rule = with_rule_words(conversation.rules).filter(pk=pk).first()
    if rule is None:
        raise ActionError(_("This no longer exists. Reload the page."))
    return rule
