"""The wires that clients speak, each in a module of its own: its errors, what a request
asks for, and how a reply is read. Nothing here knows the database."""

from importlib import import_module
from typing import Any

# By the name that requests are kept with.
NAMES = {"chat": "openai_chat"}


def find_wire_by_name(name: str) -> Any:
    return import_module(f"{__name__}.{NAMES[name]}")
