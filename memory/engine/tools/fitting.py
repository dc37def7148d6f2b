"""The fit of a transcript with tool calls into a request.

Pairs are whole and in order, and as much is shortened or left out as the limit
requires. Cuts are recorded by message number, so that the same request can be made
again from the stored messages.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import partial

from langchain_core.messages import BaseMessage

from ..compose import Context, Kind, fit_context
from ..tokens import TokenCounter
from . import rounds, shorten

# The cuts of messages, by their number.
Cuts = Mapping[int, shorten.Levels]


def prepare_messages(
    messages: Sequence[BaseMessage], *, clip: int = 0, cuts: Cuts | None = None
) -> list[BaseMessage]:
    """Return messages of a transcript in the order and form that providers accept.

    Arguments of more than `clip` characters are cut; 0: none.
    """
    shown = rounds.arrange_rounds(messages)
    if clip:
        shown = shorten.clip_tool_args(shown, clip)
    if not cuts:
        return shown
    return [
        shorten.cut_message(message, cuts[place], place)
        if (place := number_of(message)) in cuts
        else message
        for message in shown
    ]


def number_of(message: BaseMessage) -> int | None:
    """Return a message's number in the transcript, or None if it is not in it."""
    return int(message.id) if message.id else None


def squeeze_context(
    context: Context, limit: int, count_tokens: TokenCounter
) -> tuple[Context, Cuts]:
    """Return the context in `limit` tokens, as far as possible, and what was cut.

    First the recalled notes are dropped. Then results and arguments of old turns are
    shortened, then the oldest turns dropped. In the running turn, results that the
    model has read are shortened, then its oldest rounds dropped, then its newest round
    is shortened. System prompt, summaries and the newest message stay.
    """
    if count_tokens(context.messages) <= limit:
        return context, {}
    context = context.with_section("recalled", ())
    context, cuts = _cut_section(
        context, "window", shorten.in_window, limit, count_tokens
    )
    context = fit_context(context, limit, count_tokens)
    if count_tokens(context.messages) > limit:
        shorter, cut = _cut_section(
            context, "steps", shorten.order_turn_cuts, limit, count_tokens
        )
        start = _find_round(shorter, limit, count_tokens)
        shown = _from_step(shorter, start)
        if count_tokens(shown.messages) > limit:
            order = partial(shorten.order_turn_cuts, newest=shorten.LEVELS)
            kept = _from_step(context, start)
            shown, cut = _cut_section(kept, "steps", order, limit, count_tokens)
        context, cuts = shown, {**cuts, **cut}
    sent = {number_of(message) for message in context.messages}
    return context, {place: some for place, some in cuts.items() if place in sent}


def _cut_section(
    context: Context,
    kind: Kind,
    order: shorten.Order,
    limit: int,
    count_tokens: TokenCounter,
) -> tuple[Context, Cuts]:
    messages = context.get_section(kind)
    excess = count_tokens(context.messages) - limit
    places = {id(each): place for each in messages if (place := number_of(each))}
    shown, levels = shorten.cut_down(
        messages, excess, count_tokens, places, order(messages)
    )
    pairs = zip(messages, levels, strict=True)
    cuts = {
        places[id(each)]: some for each, some in pairs if some and id(each) in places
    }
    return context.with_section(kind, shown), cuts


def _from_step(context: Context, start: int) -> Context:
    return context.with_section("steps", context.get_section("steps")[start:])


def _find_round(context: Context, limit: int, count_tokens: TokenCounter) -> int:
    """Return where the rounds of the running turn begin that there is room for.

    The newest round at the latest.
    """
    starts = [0, *rounds.find_rounds(context.get_section("steps"))[1:]]
    first = bisect_left(
        starts[:-1],
        True,
        key=lambda start: count_tokens(_from_step(context, start).messages) <= limit,
    )
    return starts[first]
