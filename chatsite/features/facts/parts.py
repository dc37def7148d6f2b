"""The page parts of facts: below their message, and in the right pane."""

from django.template.loader import render_to_string

from chatsite.features.statements.parts import (
    ShownStatement,
    group_by_message,
    make_message_part,
)
from chatsite.pages.presenters.context_pane import ContextSection
from memory.models import Conversation

from .models import Fact
from .store import facts_of

SHOWN = (Fact.State.OFFERED, Fact.State.KEPT, Fact.State.HERE)


def list_stated_facts(
    conversation: Conversation, first: int, end: int | None
) -> dict[int, tuple[ShownStatement, ...]]:
    """Return offered and kept facts of messages `first` to before `end`."""
    if not conversation.get_policy().learns_facts:
        return {}
    rows = facts_of(conversation.owner_id).filter(
        conversation=conversation, state__in=SHOWN, is_source=True
    )
    return group_by_message(rows, first, end)


draw_stated_facts = make_message_part("facts")
ROWS = {"facts": list_stated_facts}


def draw_facts_section(conversation: Conversation, section: ContextSection) -> str:
    """Return the facts of a request, each with the link to its message."""
    places = [fact.place.partition("#") for fact in section.rules]
    rows = Conversation.objects.filter(
        owner=conversation.owner_id, deleted_at=None, uuid__in={u for u, _, _ in places}
    )
    titles = {str(uuid): title for uuid, title in rows.values_list("uuid", "title")}
    facts = [
        (fact, {"uuid": uuid, "seq": seq, "title": titles.get(uuid)})
        for fact, (uuid, _hash, seq) in zip(section.rules, places, strict=True)
    ]
    values = {"conversation": conversation, "section": section, "facts": facts}
    return render_to_string("facts/_section.html", values)
