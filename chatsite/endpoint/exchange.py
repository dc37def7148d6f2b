"""One request of a client, from its first byte to the last one of its answer."""

from collections.abc import Mapping
from typing import Any

from .models import ApiKey
from .wires.errors import WireError


async def answer(
    wire: Any,
    key: ApiKey,
    scope: dict[str, Any],
    headers: Mapping[str, str],
    receive: Any,
    send: Any,
) -> None:
    """Raises WireError as long as nothing was answered."""
    raise WireError(404, "not_found", "Nothing is answered here yet.")
