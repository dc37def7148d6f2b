"""The decisions of users about facts."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.database import lock_user
from chatsite.features.statements.edits import StatementEdit
from chatsite.features.statements.rows import check_words
from memory.engine.facts import detection, topics
from memory.transcript import ActionError

from .models import Fact
from .store import MOST_KEPT, block_of, bound_facts, facts_of, hash_of

State = Fact.State
KEPT = (State.KEPT, State.HERE)

# In the log of what the owner has done.
ACTIONS = {
    "remember": gettext_lazy("kept a fact about themselves"),
    "remember-here": gettext_lazy("kept a fact about themselves in a conversation"),
    "not-remember": gettext_lazy("dismissed a fact about themselves"),
    "offer-fact": gettext_lazy("asked to be offered a fact about themselves again"),
    "reword-fact": gettext_lazy("reworded a fact about themselves"),
}
# Those after which the model reads something else in this conversation.
CHANGING = ("remember-here", "reword-fact")


@transaction.atomic
def keep_fact(
    owner_id: int, pk: int, *, text: object = None, is_local: bool = False
) -> list[str]:
    """Keep a fact as it was stated, or as `text`, and return the words it replaces.

    Facts that it contradicts are replaced. `is_local`: it is kept for the conversation
    that it was stated in, and replaces none; one that is reworded stays so.
    Raises ActionError if there is no such fact, its message is gone, there are too
    many, or it was offered and a later fact contradicts it; TextError if the text can't
    be stored.
    """
    fact = lock_fact(owner_id, pk)
    if not fact.is_source:
        raise ActionError(_("The message with this fact was deleted or hidden."))
    if text is not None:
        text = check_words(text, detection.MAX_CHARS)
        if text != fact.words:
            fact.text = fact.words = text
            fact.worded_at = fact.said_at = timezone.now()
        is_local = fact.state == State.HERE
    others = [] if is_local else _find_contradicted(owner_id, fact)
    is_offer = fact.state == State.OFFERED and text is None
    if is_offer and (later := [o for o in others if o.said_at > fact.said_at]):
        said = _("You said later: “%(words)s”. Erase that fact first.")
        raise ActionError(said % {"words": later[0].words})
    name = hash_of(block_of(fact.words, fact.said_at))
    fact.names = list(dict.fromkeys([*fact.names, name]))
    fact.state = State.HERE if is_local else State.KEPT
    fact.replaced_by = None
    fact.save()
    gone = Fact.objects.filter(pk__in=[other.pk for other in others])
    gone.update(state=State.REPLACED, replaced_by=fact)
    _check_room(owner_id)
    return [other.words for other in others]


def _check_room(owner_id: int) -> None:
    if facts_of(owner_id).filter(state__in=KEPT).count() > MOST_KEPT:
        raise ActionError(_("Your memory is full. Erase a fact there first."))
    bound_facts(owner_id)


def _find_contradicted(owner_id: int, fact: Fact) -> list[Fact]:
    """Return the kept facts that this one contradicts."""
    kept = facts_of(owner_id).filter(state=State.KEPT, is_source=True)
    rows = list(kept.exclude(pk=fact.pk).order_by("pk"))
    places = topics.find_contradicted(fact.words, [row.words for row in rows])
    return [rows[place] for place in places]


@transaction.atomic
def reword_fact(
    owner_id: int, pk: int, *, text: str = "", undo: str = ""
) -> tuple[str, list[str]]:
    """Reword a kept fact, or undo that.

    Return what undoes it, signed, and the words of the facts that it replaces.
    """
    is_kept = lock_fact(owner_id, pk).state in KEPT
    edit = StatementEdit(Fact.objects.filter(owner=owner_id), "worded_at", owner_id)
    replaced: list[str] = []
    if undo:
        edit.restore_rows(undo)
        _check_room(owner_id)
    elif is_kept:
        replaced = keep_fact(owner_id, pk, text=text)
    else:
        raise ActionError(_("This no longer exists. Reload the page."))
    return edit.sign_undo(), replaced


@transaction.atomic
def dismiss_fact(owner_id: int, pk: int) -> None:
    """Dismiss a fact. Raises ActionError if there is no such fact."""
    fact = lock_fact(owner_id, pk)
    fact.state, fact.replaced_by = State.DISMISSED, None
    fact.save(update_fields=["state", "replaced_by"])
    bound_facts(owner_id)


@transaction.atomic
def offer_fact(owner_id: int, pk: int) -> None:
    """Undo what was decided about a fact: what it has replaced is kept again."""
    fact = lock_fact(owner_id, pk)
    replaced = fact.replaces.filter(state=State.REPLACED)
    replaced.update(state=State.KEPT, replaced_by=None)
    fact.state, fact.replaced_by = State.OFFERED, None
    fact.save(update_fields=["state", "replaced_by"])
    bound_facts(owner_id)


@transaction.atomic
def erase_fact(owner_id: int, pk: int) -> None:
    """Forget a fact, also in the requests that were sent with it. Its message stays."""
    lock_fact(owner_id, pk).delete()


def lock_fact(owner_id: int, pk: int) -> Fact:
    # One decision at a time: what is kept is counted and replaced.
    lock_user(owner_id)
    fact = facts_of(owner_id).filter(pk=pk).first()
    if fact is None:
        raise ActionError(_("This no longer exists. Reload the page."))
    return fact


def list_facts(owner_id: int) -> dict[str, list[Fact]]:
    """Return a user's facts for their page, by state; the newest first."""
    rows = facts_of(owner_id).select_related("conversation", "replaced_by")
    rows = rows.exclude(state=State.DISMISSED).order_by("-said_at", "-pk")
    found: dict[str, list[Fact]] = {"kept": [], "offered": [], "replaced": []}
    for fact in rows:
        # An offer without its message is none.
        if fact.state == State.KEPT or fact.is_source:
            name = State.KEPT if fact.state == State.HERE else fact.state
            found[name].append(fact)
    return found


def describe_facts(user: AbstractBaseUser) -> list[dict[str, Any]]:
    """Return the facts for the download of an account."""
    return [
        {
            "text": fact.words,
            "state": fact.state,
            "said_at": fact.said_at,
            "conversation": str(fact.uuid),
            "message": fact.seq,
        }
        for fact in facts_of(user.pk).order_by("pk")
    ]
