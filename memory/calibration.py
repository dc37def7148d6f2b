"""The difference between a provider's token counts and the estimate.

It is a constant and a factor. A server may add the same to every request (a system text
of its own, a template, tool schemas), and its tokens may be shorter than the estimate
assumes. Only requests of different lengths tell the two apart; until there are some,
the whole difference counts as constant.
"""

from .models import Conversation

# The weight of one request is 1 / REMEMBERED.
REMEMBERED = 20
# The squared distance in tokens between requests at which the measured factor weighs as
# much as the default of 1.
DOUBT = 300.0**2
LEAST, MOST = 0.75, 4.0


def follow_report(
    conversation: Conversation, estimated: int, reported: int, added: int | None = None
) -> dict[str, object]:
    """Return the conversation's new values after a request.

    `added`: how many of the `estimated` tokens are not of messages (None: the learned
    overhead). The result is empty if the count is far too low, as from servers that
    leave out cached tokens.
    """
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
