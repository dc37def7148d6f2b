"""The page parts of branches: links to other branches, a choice, and a menu item.

The links are below a message; the choice is where a message is edited.
"""

from collections.abc import Mapping
from typing import NamedTuple

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from chatsite.pages import parts
from chatsite.pages.presenters.transcript_pane import ShownMessage
from memory.models import Conversation

from .forks import find_forks
from .models import Branch
from .services import nodes_of


class ShownFork(NamedTuple):
    """The place of the shown branch among those of a fork, and the neighbours.

    `before` and `after` are conversations; "": there is none.
    """

    place: int
    count: int
    before: str
    after: str


def read_forks(
    conversation: Conversation, first: int, end: int | None
) -> Mapping[int, ShownFork]:
    """Return the forks with other existing branches, by message number."""
    if conversation.tree is None:
        return {}
    rows = Branch.objects.filter(tree=conversation.tree)
    rows = list(rows.select_related("conversation"))
    there = {
        row.pk: str(row.conversation.uuid)
        for row in rows
        if row.conversation and not row.conversation.deleted_at
    }
    own = next((row.pk for row in rows if row.conversation_id == conversation.pk), None)
    if own is None:
        return {}
    shown = {}
    for seq, fork in find_forks(nodes_of(rows), own).items():
        here = fork.branches[fork.place]
        left = [pk for pk in fork.branches if pk in there or pk == here]
        if len(left) > 1 and first <= seq and (end is None or seq < end):
            place = left.index(here)
            before = there[left[place - 1]] if place else ""
            after = there[left[place + 1]] if place + 1 < len(left) else ""
            shown[seq] = ShownFork(place + 1, len(left), before, after)
    return shown


def draw_fork(conversation: Conversation, message: ShownMessage) -> str:
    fork = message.extra.get("fork")
    if not fork:
        return ""
    values = {"fork": fork, "seq": message.seq, "conversation": conversation}
    return render_to_string("tree/_fork.html", values)


ROWS = {"fork": read_forks}


def draw_branch_choice(conversation: Conversation) -> str:
    """Return the checkbox of an edited message: whether it begins a branch."""
    if conversation.is_temporary:
        return ""
    values = {"conversation": conversation}
    template = "tree/_choice.html"
    return parts.render_once(parts.cache, template, lambda: values, conversation.uuid)


def draw_map_item(conversation: Conversation) -> str:
    if conversation.tree is None:
        return ""
    url = reverse("tree-map", args=[conversation.uuid])
    return parts.draw_dialog_button(url, _("Branches…"))
