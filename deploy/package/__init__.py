"""Summary and window for the context of language models.

The names below are loaded when they are first used: a program that wants a policy alone
doesn't load LangChain's agents. The classes that take the place of those of LangChain,
Deep Agents and LangMem are in `windowpane_memory.agents`.
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .agents.failures import SummaryWarning
    from .agents.langgraph import ContextState, build_context, load_memory, summarize
    from .agents.middleware import WindowpaneMiddleware
    from .agents.stores import (
        CompactionRecord,
        InMemoryStore,
        LangGraphStore,
        MemoryStore,
        SQLiteStore,
        ThreadMemory,
    )
    from .agents.threads import thread_key
    from .engine.exceptions import EngineError, PolicyError, SummaryError
    from .engine.policy import Policy
    from .engine.tokens import count_tokens

__version__: str

__all__ = [
    "CompactionRecord",
    "ContextState",
    "EngineError",
    "InMemoryStore",
    "LangGraphStore",
    "MemoryStore",
    "Policy",
    "PolicyError",
    "SQLiteStore",
    "SummaryError",
    "SummaryWarning",
    "ThreadMemory",
    "WindowpaneMiddleware",
    "__version__",
    "build_context",
    "count_tokens",
    "load_memory",
    "summarize",
    "thread_key",
]

_MODULES = {
    "agents.failures": ("SummaryWarning",),
    "agents.langgraph": ("ContextState", "build_context", "load_memory", "summarize"),
    "agents.middleware": ("WindowpaneMiddleware",),
    "agents.stores": (
        *("CompactionRecord", "InMemoryStore", "LangGraphStore", "MemoryStore"),
        *("SQLiteStore", "ThreadMemory"),
    ),
    "agents.threads": ("thread_key",),
    "engine.exceptions": ("EngineError", "PolicyError", "SummaryError"),
    "engine.policy": ("Policy",),
    "engine.tokens": ("count_tokens",),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return metadata.version("windowpane-memory")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_PLACES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
