"""How the provider's token counts differ from the estimate: a constant and a factor.

A server may add the same to every request (a system text of its own, a template, tool
schemas), and its tokens may be shorter than the estimate assumes. Only requests of
different lengths tell the two apart; until there are some, all counts as constant.
"""

from .models import Conversation

# Weight of one request is one in so many.
REMEMBERED = 20
# How far apart the requests have to be (in tokens, squared) for the measured factor to
# weigh as much as the default of 1.
DOUBT = 300.0**2
LEAST, MOST = 0.75, 4.0


def follow_report(
    conversation: Conversation,
    estimated: int,
    reported: int,
    added: int | None = None,
) -> dict[str, object]:
    """The conversation's new values after a request, of whose `estimated` tokens so
    many were `added` to the messages (None: the learned overhead); empty for a count
    that is far too low, as from servers that leave out what they had cached."""
    if added is None:
        added = conversation.token_overhead
    plain = (estimated - added) / conversation.token_ratio
    if plain <= 0 or reported < LEAST * plain:
        return {}
    count, mean_x, mean_y, spread, shared = conversation.token_sums or [0.0] * 5
    count = min(count + 1, REMEMBERED)
    weight = 1 / count
    x, y = plain - mean_x, reported - mean_y
    mean_x, mean_y = mean_x + weight * x, mean_y + weight * y
    spread = (1 - weight) * (spread + weight * x * x)
    shared = (1 - weight) * (shared + weight * x * y)
    ratio = min(max((shared + DOUBT) / (spread + DOUBT), LEAST), MOST)
    overhead = max(0.0, mean_y - ratio * mean_x)
    return {
        "token_ratio": ratio,
        "token_overhead": round(overhead),
        "token_sums": [count, mean_x, mean_y, spread, shared],
    }
