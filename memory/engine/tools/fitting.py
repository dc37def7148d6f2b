"""What a request holds of a transcript with calls of tools: pairs whole and in order,
and as much of it shortened or left out as a ceiling needs. What was shortened is told
by number, so that the same request can be made again from the stored messages.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import partial

from langchain_core.messages import BaseMessage

from ..compose import Context, Kind, fit_context
from ..tokens import TokenCounter
from . import rounds, shorten

# How messages were cut, by their number.
Cuts = Mapping[int, shorten.Levels]


def prepare_messages(
    messages: Sequence[BaseMessage], *, clip: int = 0, cuts: Cuts | None = None
) -> list[BaseMessage]:
    """Messages of a transcript, in the order of their numbers, as a provider takes
    them. Arguments of more than `clip` characters are cut; 0: none."""
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
    """A message's number in the transcript; None: it is not there itself."""
    return int(message.id) if message.id else None


def squeeze_context(
    context: Context, limit: int, count_tokens: TokenCounter
) -> tuple[Context, Cuts]:
    """The context in `limit` tokens, as far as that can be, and what of it was cut.

    What was recalled goes first. Then results and arguments of old turns become
    shorter, then the oldest turns go. Of the turn that runs, results that the model has
    read become shorter, then its oldest rounds go, and then its newest round becomes
    shorter. System prompt, summaries and the newest message stay.
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
    """Where the rounds of the running turn begin that there is room for: the newest one
    at the latest."""
    starts = [0, *rounds.find_rounds(context.get_section("steps"))[1:]]
    first = bisect_left(
        starts[:-1],
        True,
        key=lambda start: count_tokens(_from_step(context, start).messages) <= limit,
    )
    return starts[first]
