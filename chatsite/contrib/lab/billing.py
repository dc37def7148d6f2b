"""Billing of requests to models, to the user who starts them."""

from collections.abc import Awaitable, Callable
from typing import Any

from channels.db import database_sync_to_async
from langchain_core.messages import AIMessage, BaseMessage

from chatsite.turns import limits
from memory.engine.tokens import count_text, count_tokens

Ask = Callable[..., Awaitable[AIMessage]]


async def send_paid(
    payer: int, model: str, ask: Ask, messages: list[BaseMessage], **options: Any
) -> tuple[AIMessage, limits.ModelUse]:
    """Send one request; return the reply and the use that was charged to `payer`.

    Tokens are counted as the provider reported them, else as estimated.
    """
    reply = await ask(messages, **options)
    usage = reply.usage_metadata or {}
    read = usage.get("input_tokens") or count_tokens(messages)
    written = usage.get("output_tokens") or count_text(str(reply.text))
    used = limits.ModelUse(model, read, written)
    await database_sync_to_async(limits.charge_use)(payer, used)
    return reply, used
