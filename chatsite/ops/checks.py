"""System checks: settings whose mistakes only users would notice later.

Each has an id and a hint. `manage.py check --deploy` is the installation guide.
"""

import os
import re
from collections.abc import Iterator
from importlib import metadata
from itertools import filterfalse
from typing import Any
from urllib.request import getproxies

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connection
from django.http.request import split_domain_port, validate_host
from langchain_core.messages import SystemMessage

from chatsite.llm import providers
from chatsite.ops.extras import find_unused_settings
from chatsite.settings import env
from memory import context
from memory.engine import budget
from memory.engine.policy import PRESETS, Policy
from memory.engine.tokens import count_tokens

TRACING_VARIABLES = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)

NUMBER = re.compile(r"\d+")
# Older ones have published holes that a stranger can use without logging in.
SAFE_VERSIONS = {"Django": (5, 2, 14), "daphne": (4, 2, 2)}

# Fewer tokens hold hardly a summary and a message.
MIN_ROOM = 512


@register(Tags.security, deploy=True)
def check_hosts(**kwargs: Any) -> Iterator[CheckMessage]:
    if "*" in settings.ALLOWED_HOSTS:
        yield Error(
            "ALLOWED_HOSTS has '*', so the site answers under any name.",
            hint="List the host names that the site is reached by.",
            id="chat.E002",
        )


@register(Tags.security, deploy=True)
def check_origins_set(**kwargs: Any) -> Iterator[CheckMessage]:
    if not settings.SITE_ORIGINS and not settings.DEBUG:
        yield Warning(
            "SITE_ORIGINS is empty, so browsers may not be able to open a socket.",
            hint="Set it to the full origins of the site, such as "
            "https://chat.example.com.",
            id="chat.W001",
        )


@register(Tags.security, deploy=True)
def check_origins_answered(**kwargs: Any) -> Iterator[CheckMessage]:
    for origin in settings.SITE_ORIGINS:
        host = split_domain_port(origin.partition("://")[2])[0]
        if not validate_host(host, settings.ALLOWED_HOSTS):
            yield Warning(
                f"SITE_ORIGINS has {origin!r}, but ALLOWED_HOSTS does not have its "
                "host, so its pages answer 400.",
                hint=f"Add {host} to ALLOWED_HOSTS.",
                id="chat.W007",
            )


@register()
def check_names(**kwargs: Any) -> Iterator[CheckMessage]:
    for sentence in env.find_slips():
        yield Warning(
            sentence, hint="docs/settings.md lists all settings.", id="chat.W008"
        )


@register()
def check_extras(**kwargs: Any) -> Iterator[CheckMessage]:
    for sentence in find_unused_settings():
        yield Warning(sentence, hint="Add it to EXTRAS.", id="chat.W011")


@register(Tags.database)
def check_shared_database(**kwargs: Any) -> Iterator[CheckMessage]:
    # Redis is there for several processes, and several machines can't share a file.
    if settings.REDIS_URL and connection.vendor == "sqlite":
        yield Warning(
            "REDIS_URL is set but the database is SQLite.",
            hint="Several processes need PostgreSQL: set DATABASE_URL.",
            id="chat.W002",
        )


@register(Tags.database, deploy=True)
def check_layer(**kwargs: Any) -> Iterator[CheckMessage]:
    if not settings.REDIS_URL and connection.vendor != "sqlite":
        yield Warning(
            "REDIS_URL is not set, so the processes can't exchange events.",
            hint="Set REDIS_URL as soon as there is more than one process.",
            id="chat.W004",
        )


@register(Tags.security, deploy=True)
def check_versions(**kwargs: Any) -> Iterator[CheckMessage]:
    for name, safe in SAFE_VERSIONS.items():
        if tuple(map(int, NUMBER.findall(metadata.version(name))[:3])) < safe:
            yield Error(
                f"{name} {metadata.version(name)} has known holes.",
                hint=f"Install {'.'.join(map(str, safe))} or newer: "
                "pip install --requirement requirements/site.lock",
                id="chat.E003",
            )


@register()
def check_window(**kwargs: Any) -> Iterator[CheckMessage]:
    """Warn of thresholds that the model's window has no room for.

    They are lowered, which people who chose them would not expect.
    """
    for name, window in _list_windows().items():
        yield from _check_room(name, window)


def _list_windows() -> dict[str, int]:
    """Return the windows that are known without a request, by their settings."""
    default = providers.DEFAULT_CONTEXT_WINDOW
    if not settings.PROVIDERS:
        return {"CONTEXT_WINDOW": settings.CONTEXT_WINDOW or default}
    models = [model for each in settings.PROVIDERS for model in each.models]
    return {
        f"The window of {model.name!r} in PROVIDERS_FILE,": model.window or default
        for model in models
    }


def _check_room(name: str, window: int) -> Iterator[CheckMessage]:
    limit = context.request_limit(window)
    system = count_tokens([SystemMessage(settings.SYSTEM_PROMPT)])
    presets: dict[str, list[str]] = {}
    for preset, name in _too_large(limit - system):
        presets.setdefault(name, []).append(preset)
    names = [f"{name} ({', '.join(found)})" for name, found in presets.items()]
    if window // 4 < settings.REPLY_RESERVE:
        names.insert(0, f"REPLY_RESERVE of {settings.REPLY_RESERVE:,}")
    if names:
        yield Warning(
            f"{name} of {window:,} tokens is too small for "
            f"{'; '.join(names)}. Lower values are used.",
            hint="Let the server of the model take more tokens (Ollama: num_ctx) "
            "and set it to that number.",
            id="chat.W005",
        )
    if limit <= system + MIN_ROOM:
        yield Error(
            f"{name} of {window:,} tokens leaves "
            f"{max(0, limit - system):,} for a conversation, besides SYSTEM_PROMPT "
            "and the reply.",
            hint="Set it to what the model takes, or shorten SYSTEM_PROMPT.",
            id="chat.E004",
        )


def _too_large(limit: int) -> Iterator[tuple[str, str]]:
    for preset in PRESETS:
        policy = Policy(preset=preset)
        capped = budget.cap_policy(policy, limit)
        most = budget.for_window(capped, limit, capped.summary_budget, is_waiting=False)
        for kind, amount in (size for clause in policy.trigger for size in clause):
            if kind == "tokens" and amount > most:
                yield preset, f"trigger of {amount:,} tokens"
        if policy.keep[0] == "tokens" and policy.keep[1] > most:
            yield preset, f"keep of {policy.keep[1]:,} tokens"
        names = ["max_summary_tokens", "recall_tokens"]
        names += ["summary_budget"] if policy.strategy == "layered" else []
        for name in names:
            if getattr(capped, name) < getattr(policy, name):
                yield preset, f"{name} of {getattr(policy, name):,}"


@register(deploy=True)
def check_models(**kwargs: Any) -> Iterator[CheckMessage]:
    if settings.PROVIDERS or settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL:
        return
    for name in filterfalse(providers.is_demo, providers.list_models()):
        yield Error(
            f"{name!r} is offered as a model, but neither OPENAI_API_KEY nor "
            "OPENAI_BASE_URL is set, so every reply would fail.",
            hint="Set one of them, or leave CHAT_MODEL and CHAT_MODELS empty: then "
            "the demo model answers.",
            id="chat.E008",
        )


@register()
def check_langchain_models(**kwargs: Any) -> Iterator[CheckMessage]:
    for model in (model for each in settings.PROVIDERS for model in each.models):
        try:
            if model.model:
                providers.build(model.name)
        except LookupError as error:
            yield Error(
                str(error),
                hint="Install its package, or mend model in PROVIDERS_FILE.",
                id="chat.E012",
            )


@register()
def check_proxies(**kwargs: Any) -> Iterator[CheckMessage]:
    for scheme, address in getproxies().items():
        if scheme in ("http", "https", "all") and address.startswith("socks"):
            yield Warning(
                f"The {scheme} proxy of the environment speaks SOCKS, which requests "
                "to a model can't use.",
                hint="Name a proxy that speaks HTTP, or list the model's host in "
                "NO_PROXY.",
                id="chat.W006",
            )


@register(Tags.security)
def check_tracing(**kwargs: Any) -> Iterator[CheckMessage]:
    for name in TRACING_VARIABLES:
        if os.environ.get(name, "").strip().lower() in ("true", "1"):
            yield Warning(
                f"{name} is on, so LangChain sends every conversation to LangSmith.",
                hint=f"Unset {name} unless people know that their chats leave this "
                "site.",
                id="chat.W003",
            )
