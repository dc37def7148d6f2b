"""The search of people in their long files: whole words that stand in one passage."""

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from django.db import connection
from django.db.models import Q

from memory.engine.search.terms import extract_terms
from memory.search import recall
from memory.search.conversation_search import MAX_WORDS

from ..models import FilePassage, LongFileUse
from .searching import LOOK_UP

# The newest of them are searched, in one statement, and the messages that have them.
MOST_FILES, MOST_USES = 50, 200


def find_in_long_files(
    conversations: Sequence[int], query: str, limit: int
) -> dict[int, str]:
    """Return {message key: passage} of up to `limit` messages of these conversations.

    The passage is the last one of the message's long file that has every word of the
    query.
    """
    words = [*dict.fromkeys(extract_terms(query))][:MAX_WORDS]
    if not words:
        return {}
    uses = LongFileUse.objects.filter(
        conversation__in=conversations, file__is_whole=True
    )
    messages: dict[UUID, list[int]] = defaultdict(list)
    newest = uses.order_by("-message_id").values_list("file", "message")
    for file, message in newest[:MOST_USES]:
        messages[file].append(message)
    texts = _find_last_passages([*messages][:MOST_FILES], words)
    found = [(pk, text) for file, text in texts.items() for pk in messages[file]]
    return dict(found[:limit])


def _find_last_passages(files: Sequence[UUID], words: Sequence[str]) -> dict[UUID, str]:
    coded = {" ".join(recall.make_keys(file, words)): file for file in files}
    if not coded:
        return {}
    statement = " UNION ALL ".join([LOOK_UP[connection.vendor]] * len(coded))
    values = [value for keys in coded for value in (keys, keys, 1)]
    found = recall.read_lists([*coded], statement, values)
    places = [
        Q(file=coded[keys], number=n) for keys, some in found.items() for n in some
    ]
    if not places:
        return {}
    rows = FilePassage.objects.filter(Q(*places, _connector=Q.OR))
    return dict(rows.values_list("file", "text"))
