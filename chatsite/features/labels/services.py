"""Rows of labels: named, given to conversations, taken off them.

Nothing here changes a message, what the model sees, or when a conversation was last
used. The conversations that are passed in are the owner's; the callers see to that.
"""

from collections.abc import Iterable, Sequence
from unicodedata import normalize

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chatsite.database import lock_user
from chatsite.features.tree.listing import expand_rows
from chatsite.pages.list_actions.answers import ListError
from memory.engine.blank import is_blank
from memory.models import Conversation

from .models import Label

# Labels of one user.
MOST = 50
# In the log of what the owner has done.
GIVEN, TAKEN = "label", "unlabel"

Link = Label.conversations.through


class LabelError(ListError):
    """A name that no label can have now; the message says why and what to do."""


def list_labels(user: AbstractBaseUser | int) -> QuerySet[Label]:
    """All labels of a user, or of the key of one, by name."""
    return Label.objects.filter(owner=user)


def list_names(user: AbstractBaseUser) -> list[str]:
    return list(list_labels(user).values_list("name", flat=True))


def clean_name(name: str) -> str:
    """Return a name as it is stored: on one line, its accents composed.

    Raises LabelError.
    """
    name = normalize("NFC", " ".join(name.split()))
    if is_blank(name):
        raise LabelError(_("Give the label a name."))
    if len(name) > Label.MAX_CHARS:
        text = _("A label has at most %(limit)s characters. Choose a shorter name.")
        raise LabelError(text % {"limit": Label.MAX_CHARS})
    return name


def make_key(name: str) -> str:
    """Return the key that names have in common if they differ only in capitals."""
    return name.casefold()


@transaction.atomic
def find_or_make_labels(user: AbstractBaseUser, names: Sequence[str]) -> list[Label]:
    """Return the user's labels of these names, in their order.

    Missing labels are made as long as there is room; the others are left out.
    """
    wanted: dict[str, str] = {}
    for name in map(clean_name, names):
        wanted.setdefault(make_key(name), name)
    known = {label.key: label for label in _lock_labels(user).filter(key__in=wanted)}
    missing = [key for key in wanted if key not in known]
    room = MOST - list_labels(user).count() if missing else 0
    made = [Label(owner=user, name=wanted[key], key=key) for key in missing]
    for label in Label.objects.bulk_create(made[: max(0, room)]):
        known[label.key] = label
    return [known[key] for key in wanted if key in known]


def find_or_make_label(user: AbstractBaseUser, name: str) -> Label:
    """Return the user's label of this name. Raises LabelError if there are too many."""
    found = find_or_make_labels(user, [name])
    if not found:
        text = _("You have %(limit)s labels, which is the limit. Delete one first.")
        raise LabelError(text % {"limit": MOST})
    return found[0]


@transaction.atomic
def rename_label(label: Label, name: str) -> None:
    """Rename a label. Raises LabelError if another label of the owner has the name."""
    label.name = clean_name(name)
    label.key = make_key(label.name)
    if _lock_labels(label.owner).filter(key=label.key).exclude(pk=label.pk).exists():
        text = _("You already have a label “%(name)s”. Choose another name.")
        raise LabelError(text % {"name": label.name})
    label.save(update_fields=["name", "key"])


def _lock_labels(user: AbstractBaseUser) -> QuerySet[Label]:
    """Return the user's labels, and lock them for the transaction."""
    lock_user(user.pk)
    return list_labels(user)


def give_labels(labels: Iterable[Label], conversations: Iterable[Conversation]) -> None:
    """Every label to every conversation; what has it already keeps it."""
    together = expand_rows([*conversations])
    rows = [
        Link(label_id=label.pk, conversation_id=each.pk)
        for label in labels
        for each in together
    ]
    Link.objects.bulk_create(rows, ignore_conflicts=True)


def take_labels(labels: Iterable[Label], conversations: Iterable[Conversation]) -> None:
    """Every label off every conversation."""
    together = expand_rows([*conversations])
    Link.objects.filter(label__in=labels, conversation__in=together).delete()
