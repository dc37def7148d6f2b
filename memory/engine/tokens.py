"""The token counter: an estimate that needs no download and handles Chinese.

A token counts as four bytes of UTF-8, which for Chinese text is far closer to the truth
than four characters.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from operator import is_not

from langchain_core.messages import AIMessage, BaseMessage

from .tools.call_forms import EXTRAS

TokenCounter = Callable[[Sequence[BaseMessage]], int]
# The name of each part of a request, and its tokens.
Parts = tuple[tuple[str, int], ...]

# In additional_kwargs of a message: the images that are sent with it.
SENT_IMAGES = "sent_images"
BYTES_PER_TOKEN = 4
# Role and separators, paid for every message whatever its text.
MESSAGE_OVERHEAD = 4


def count_text(text: str) -> int:
    # Lone surrogates have no UTF-8 form; counting must not fail on them.
    size = len(text.encode("utf-8", errors="surrogatepass"))
    return ceil(size / BYTES_PER_TOKEN)


def count_message(message: BaseMessage) -> int:
    content = message.content
    # LangChain builds `text` again at each use.
    text = content if isinstance(content, str) else message.text
    tokens = count_text(text) + MESSAGE_OVERHEAD
    # Images are added when a request is built; they are not part of the text.
    if images := message.additional_kwargs.get(SENT_IMAGES):
        tokens += sum(each.tokens for each in images)
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            arguments = json.dumps(call["args"], ensure_ascii=False)
            tokens += count_text(call["name"] + arguments)
        if extras := message.additional_kwargs.get(EXTRAS):
            tokens += count_text(json.dumps(extras, ensure_ascii=False))
    return tokens


def count_tokens(messages: Sequence[BaseMessage]) -> int:
    return sum(map(count_message, messages))


def count_parts(
    sections: Iterable[tuple[str, Sequence[BaseMessage]]],
    *,
    ratio: float = 1.0,
    tools: int = 0,
    added: int = 0,
) -> Parts:
    """Return the parts of a request with their tokens, in its order.

    The tools, what the provider adds besides (`added` holds both), and the sections.
    Their sum is the estimate of the request.
    """
    parts, said, end = [("tools", tools), ("provider", max(0, added - tools))], 0, 0
    for kind, messages in sections:
        said += count_tokens(messages)
        # Rounded once, so that the sum is that of all messages together.
        upto = ceil(said * ratio)
        parts.append((kind, upto - end))
        end = upto
    return tuple((name, count) for name, count in parts if count)


def share_out(sizes: Sequence[tuple[str, int]], total: int) -> Parts:
    """Scale the sizes so that their sum is `total`."""
    whole, said, end, parts = sum(size for _, size in sizes), 0, 0, []
    for name, size in sizes:
        said += size
        upto = said * total // whole if whole else 0
        parts.append((name, upto - end))
        end = upto
    return tuple(parts)


def remember_counts(count_tokens: TokenCounter) -> TokenCounter:
    """Return the counter with a cache of the last messages that it counted."""
    known: list[BaseMessage] = []
    tokens = 0

    def count(messages: Sequence[BaseMessage]) -> int:
        nonlocal known, tokens
        if len(messages) != len(known) or any(map(is_not, messages, known)):
            known, tokens = list(messages), count_tokens(messages)
        return tokens

    return count


def scale_counter(ratio: float) -> TokenCounter:
    """Return the counter, scaled by reported / estimated tokens of earlier requests."""

    def count_scaled(messages: Sequence[BaseMessage]) -> int:
        return ceil(count_tokens(messages) * ratio)

    return count_scaled
