"""Tools of a site, for the setting TOOLS: each fails or answers in its own way."""

import asyncio
import base64
import time
from contextlib import suppress
from pathlib import Path

from langchain.tools import ToolRuntime, tool
from langchain_core.tools import ToolException

from chatsite.features.tools.context import (
    CallContext,
    CallProgress,
    PendingResult,
    reporter,
    site_tool,
)

from .tool_paths import NAMES, PATHS  # noqa: F401

# Idempotency keys of the calls that began, in their order.
begun: list[str] = []
# Whom send_mail() has written to.
sent: list[str] = []


@site_tool(read_only=True)
@tool
async def look_up(city: str) -> str:
    """The weather of a city."""
    return f"{city}: 21 degrees"


@site_tool()
@tool
async def write_down(text: str, runtime: ToolRuntime[CallContext]) -> str:
    """Write a note."""
    begun.append(runtime.context.idempotency_key)
    return f"Noted: {text}"


@site_tool()
@tool
async def break_down() -> str:
    """Fail without a word for the model."""
    raise KeyError("sk-secret")


@site_tool(read_only=True)
@tool
async def refuse() -> str:
    """Fail with words for the model."""
    raise ToolException("There is no such city.")


@site_tool()
@tool
async def hang(runtime: ToolRuntime[CallContext]) -> str:
    """Never answer, and ignore the request to end."""
    begun.append(runtime.context.idempotency_key)
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(3600)
    # The end of the test tells it once more.
    await asyncio.sleep(3600)


@site_tool(idempotent=True)
@tool
def hang_once(path: str, runtime: ToolRuntime[CallContext]) -> str:
    """Answer the second time only; `path` keeps the key of each."""
    keys = Path(path)
    is_first = not keys.exists()
    with keys.open("a") as file:
        file.write(f"{runtime.context.idempotency_key}\n")
    if is_first:
        time.sleep(3600)
    return "Done at last."


@site_tool(read_only=True)
@tool
async def pour(size: int) -> str:
    """Return a text of this size."""
    return "ab cd\n" * (size // 6)


@site_tool(needs_consent=True)
@tool
async def send_mail(to: str) -> str:
    """Send a mail."""
    sent.append(to)
    return f"Sent to {to}."


# What the looks at an order find, one after the other, and their handles.
orders: list[object] = []
handles: list[dict] = []


async def look_for_order(handle: dict, context: CallContext) -> object:
    handles.append(handle)
    found = orders.pop(0)
    if isinstance(found, Exception):
        raise found
    return found


# Handles of the orders that were cancelled.
cancelled: list[dict] = []


async def cancel_order(handle: dict, context: CallContext) -> None:
    cancelled.append(handle)
    if orders:
        raise orders.pop(0)


@site_tool(look=look_for_order, cancel=cancel_order)
@tool
async def order(what: str) -> PendingResult:
    """Order something. It comes later."""
    return PendingResult({"what": what}, 0.0)


@site_tool()
@tool
def meet(folder: str, name: str, fails: bool = False) -> str:
    """Wait in a folder for two others; only calls that run at once can meet."""
    Path(folder, name).touch()
    while len(list(Path(folder).iterdir())) < 3:
        time.sleep(0.02)
    if fails:
        raise ToolException(f"{name} has left again.")
    return f"{name} is here."


@site_tool(needs_consent=True)
@tool
def post_letter(path: str, runtime: ToolRuntime[CallContext]) -> str:
    """Post a letter; `path` keeps the key of each call."""
    with Path(path).open("a") as file:
        file.write(f"{runtime.context.idempotency_key}\n")
    return "Posted."


async def look_for_parcel(handle: dict, context: CallContext) -> object:
    path = Path(handle["path"])
    found = await asyncio.to_thread(lambda: path.exists() and path.read_text())
    return found or PendingResult(handle, 0.0)


@site_tool(look=look_for_parcel)
@tool
async def send_for_parcel(path: str) -> PendingResult:
    """Send for a parcel. It is there, in any process, once the file `path` is."""
    return PendingResult({"path": path}, 0.0)


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


def _file(data, kind, name):
    encoded = base64.b64encode(data).decode()
    return {"type": "file", "base64": encoded, "mime_type": kind, "name": name}


@site_tool(read_only=True)
@tool
async def draw() -> list:
    """Draw a map."""
    return [
        {"type": "text", "text": "A map."},
        _file(PNG, "image/png", "map.png"),
        _file(SVG, "image/svg+xml", "map.svg"),
        _file(SVG, "image/png", "../no picture.png"),
        {"type": "file", "url": "https://example.org/map", "name": "online"},
        {"type": "file", "url": "javascript:alert(1)", "name": "script"},
        _file(b"x" * 2_000, "text/html", "long.html"),
    ]


@site_tool(read_only=True)
@tool
async def count_up(steps: int, pause: float) -> str:
    """Count, and tell how far it is."""
    report = reporter()
    for step in range(steps):
        report(CallProgress.from_values(step + 1, steps, f"<b>step</b> {step + 1}"))
        await asyncio.sleep(pause)
    return f"Counted to {steps}."
