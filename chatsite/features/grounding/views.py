"""The origins of a reply, for its owner."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse

from chatsite.accounts.access import Values, conversation_fragment
from chatsite.ops.pace import Pace
from chatsite.turns.requests import reply_call
from memory.models import Conversation, ModelCall
from memory.view import rebuilding

from .lookup import Lookup
from .sources import SentText, list_sources

PER_MINUTE = 60
pace = Pace()
# A longer message is no question, but a text to find words in.
QUESTION_CHARS = 300
# Of a line that has a term, so much is shown.
LINE_CHARS = 160


@dataclass(frozen=True, slots=True)
class FoundTerm:
    """A term of a reply with its places: the source, its words there and the line."""

    text: str
    places: tuple[tuple[SentText, str, str], ...]


@conversation_fragment("grounding/_terms.html")
def show_grounding(
    request: HttpRequest, conversation: Conversation, seq: int
) -> Values:
    if seconds := pace.count_request(request.user.pk, PER_MINUTE):
        return HttpResponse(status=429, headers={"Retry-After": f"{seconds:.0f}"})
    call = reply_call(conversation, seq)
    if call is None or call.message is None or call.message.deleted_at:
        raise Http404
    return {"seq": seq, "terms": list(find_terms(call))}


def find_terms(call: ModelCall) -> Iterator[FoundTerm]:
    """Yield the terms of the reply to a request that are found, or nowhere for sure."""
    built = rebuilding.rebuild_context(call)
    sources = [*list_sources(built)]
    asked = next((s for s in sources if s.kind == "newest"), None)
    question = asked.text if asked and len(asked.text) <= QUESTION_CHARS else ""
    if question:
        sources.remove(asked)
    # What the model may know besides: what is held, and images.
    is_apart = built.read_held or dict(built.parts).get("only_there")
    found = Lookup(
        call.message.text,
        [source.text for source in sources],
        question,
        ranks=[source.rank for source in sources],
        today=(call.created_at.year, call.created_at.month, call.created_at.day),
        has_unread=bool(is_apart or built.refs.get("images")),
    )
    for term in found.run():
        places = [(sources[n], start, end) for n, start, end in term.places]
        yield FoundTerm(term.text, tuple(map(_show_place, places)))


def _show_place(place: tuple[SentText, int, int]) -> tuple[SentText, str, str]:
    source, start, end = place
    text = source.text
    first = max(text.rfind("\n", 0, start) + 1, start - LINE_CHARS // 2)
    last = text.find("\n", end)
    last = min(last if last >= 0 else len(text), first + LINE_CHARS)
    return source, text[start:end], text[first:last].strip()
