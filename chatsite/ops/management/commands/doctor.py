"""The command that shows an operator the checks of the site, without secrets."""

import asyncio
import json
import platform
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import django
from channels.layers import get_channel_layer
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core import checks
from django.core.management.base import BaseCommand, CommandParser
from django.db import OperationalError, connection
from django.utils import timezone
from langchain_core.messages import HumanMessage
from redis.exceptions import RedisError

from chatsite import plugins
from chatsite.accounts.names import find_twins
from chatsite.database import read_clock
from chatsite.llm import providers, streaming
from chatsite.llm.errors import LLMError
from chatsite.llm.provider_file import ModelProvider
from chatsite.ops.error_page import hide_secrets
from chatsite.ops.extras import describe_unnamed_extras, find_lost_limits
from chatsite.ops.schema import find_missing_migrations
from chatsite.release import find_version
from memory.models import Message

STATIC_FILE = "admin/css/base.css"
LAYER_TIMEOUT = 5.0
# Leases and limits go by the database's clock, sessions by this machine's.
CLOCK_TOLERANCE = 2.0
MODEL_TIMEOUT = 30.0
MOST_NAMED = 5


class DoctorError(Exception):
    """A problem and its remedy, as a sentence."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    name: str
    ok: bool
    detail: str


Check = Callable[[], str]


class Command(BaseCommand):
    help = "Checks the installation; exits with 1 if something does not work."
    # They are one of the checks here, not a condition for the others.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--model", action="store_true", help="send one short request to the model"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        selected = list_checks()
        selected |= MODEL_CHECKS if options["model"] else {}
        findings = list_findings(selected)
        ok = all(finding.ok for finding in findings)
        if options["json"]:
            rows = [asdict(finding) for finding in findings]
            self.stdout.write(json.dumps({"ok": ok, "checks": rows}, indent=2))
        for finding in () if options["json"] else findings:
            word = "ok  " if finding.ok else "FAIL"
            style = self.style.SUCCESS if finding.ok else self.style.ERROR
            self.stdout.write(f"{style(word)}  {finding.name:<14} {finding.detail}")
        if not ok:
            raise SystemExit(1)


def list_checks() -> dict[str, Check]:
    """Return the checks that cost nothing, and those of apps."""
    added = plugins.sources[plugins.DoctorCheck]
    return {**CHECKS, **{name: each.check for name, each in added.items()}}


def list_findings(selected: Mapping[str, Check]) -> list[CheckOutcome]:
    """Return the outcome of each check.

    Checks of the database are skipped without one: they would only wait for it.
    """
    found: dict[str, CheckOutcome] = {}
    for name, check in selected.items():
        is_away = name in OF_DATABASE and not found["database"].ok
        away = CheckOutcome(name, False, "not known without the database")
        found[name] = away if is_away else _run_check(name, check)
    return [*found.values()]


def _run_check(name: str, check: Check) -> CheckOutcome:
    try:
        return CheckOutcome(name, True, check())
    except Exception as error:  # noqa: BLE001
        # Whatever a check runs into is what the operator wants to know.
        text = " ".join(str(error).split())
        if not isinstance(error, DoctorError):
            text = f"{type(error).__name__}: {text}"
        return CheckOutcome(name, False, hide_secrets(text))


def show_version() -> str:
    python, django_version = platform.python_version(), django.get_version()
    return f"{find_version()}, on Python {python} and Django {django_version}"


def check_settings() -> str:
    found = checks.run_checks(include_deployment_checks=not settings.DEBUG)
    issues = [issue for issue in found if not issue.is_silenced()]
    if errors := [issue for issue in issues if issue.is_serious()]:
        listed = "; ".join(f"{issue.id} {issue.msg}" for issue in errors)
        raise DoctorError(f"{listed} See manage.py check --deploy.")
    state = (
        "DEBUG is on, for your own machine only" if settings.DEBUG else "for production"
    )
    ids = ", ".join(str(issue.id) for issue in issues)
    return f"{state}; see manage.py check --deploy about {ids}" if ids else state


def check_database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchone()
    except OperationalError as error:
        why = _ask_without_pool() or error
        raise DoctorError(
            f"It does not answer: {why}. Check DATABASE_URL, and that it runs."
        ) from error
    version = ".".join(map(str, connection.get_database_version()))
    return f"{connection.display_name} {version}"


def _ask_without_pool() -> Exception | None:
    """Return the reason why there is no connection.

    A pool that tries again does not say it.
    """
    if connection.vendor == "postgresql":
        try:
            connection.Database.connect(**connection.get_connection_params()).close()
        except connection.Database.Error as error:
            return error
    return None


def check_migrations() -> str:
    if missing := find_missing_migrations():
        raise DoctorError(f"{len(missing)} are missing. Run manage.py migrate.")
    return "all applied"


def show_extras() -> str:
    if lost := find_lost_limits():
        raise DoctorError(lost)
    return describe_unnamed_extras() or ", ".join(settings.EXTRAS) or "none"


def check_search_index() -> str:
    count = Message.objects.filter(recall_entry=None).count()
    if count:
        raise DoctorError(
            f"{count} messages can't be found. Run manage.py index_messages."
        )
    return "every message is in it"


def check_channel_layer() -> str:
    try:
        asyncio.run(_send_round())
    except (OSError, RedisError) as error:
        raise DoctorError(
            f"Redis can't be used: {error or 'no answer'}. Check REDIS_URL."
        ) from error
    if not settings.REDIS_URL:
        return "in memory: for one process only; more need REDIS_URL"
    return "Redis"


async def _send_round() -> None:
    layer = get_channel_layer()
    group, event = f"doctor.{uuid.uuid4().hex}", {"type": "doctor.ping"}
    async with asyncio.timeout(LAYER_TIMEOUT):
        channel = await layer.new_channel()
        await layer.group_add(group, channel)
        await layer.group_send(group, event)
        received = await layer.receive(channel)
        await layer.group_discard(group, channel)
    if received != event:
        raise DoctorError("The channel layer gave back something else.")


def check_clock() -> str:
    before = time.time()
    there = read_clock().timestamp()
    after = time.time()
    apart = there - (before + after) / 2
    if abs(apart) > CLOCK_TOLERANCE + (after - before):
        raise DoctorError(
            f"The database's clock is {apart:+.1f} s from this machine's. "
            "Let both follow the same time server."
        )
    lease, sweep = settings.TURN_LEASE_SECONDS, settings.TURN_SWEEP_SECONDS
    return f"{apart:+.2f} s from this machine's; a lease is {lease:g} s + {sweep:g} s"


def check_lookalikes() -> str:
    pairs = [f"{new!r} and {old!r}" for old, new in find_twins()]
    more = f", and {len(pairs) - MOST_NAMED} more" * (len(pairs) > MOST_NAMED)
    listed = ", ".join(pairs[:MOST_NAMED]) + more
    return f"these look alike: {listed}" if pairs else "none looks like another"


def check_limits() -> str:
    names = (
        "MESSAGES_PER_MINUTE",
        "CONVERSATIONS_PER_MINUTE",
        "TOKENS_PER_DAY",
        "TURNS_PER_USER",
        "QUEUED_PER_USER",
        "SOCKETS_PER_USER",
    )
    values = {name: getattr(settings, name) for name in names}
    listed = [f"{name} {value or 'off'}" for name, value in values.items()]
    return f"per user: {', '.join(listed)}"


def check_connections() -> str:
    if connection.vendor != "postgresql":
        return "one file; more than one process on a machine needs PostgreSQL"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('max_connections')::int"
            " - current_setting('superuser_reserved_connections')::int"
        )
        room = cursor.fetchone()[0]
    pool = connection.settings_dict["OPTIONS"]["pool"]["max_size"]
    if pool > room:
        raise DoctorError(
            f"DATABASE_POOL_SIZE is {pool}, but PostgreSQL takes {room} connections. "
            "Lower the one or raise max_connections."
        )
    return f"a pool of {pool}; PostgreSQL has room for {room // pool} such processes"


def check_static_files() -> str:
    if settings.DEBUG:
        if not finders.find(STATIC_FILE):
            raise DoctorError(f"{STATIC_FILE} is not found.")
        return "served from where they are"
    try:
        url = staticfiles_storage.url(STATIC_FILE)
    except ValueError:
        raise DoctorError("Not collected. Run manage.py collectstatic.") from None
    return f"collected, such as {url}"


def check_model_settings() -> str:
    if settings.PROVIDERS:
        return "; ".join(map(_describe_provider, settings.PROVIDERS))
    name = providers.default_model()
    if providers.is_demo(name):
        return "no key and no base URL are set: the demo model answers"
    if not settings.OPENAI_API_KEY and not settings.OPENAI_BASE_URL:
        raise DoctorError(f"CHAT_MODEL is {name!r}, but OPENAI_API_KEY is not set.")
    key = "a key is set" if settings.OPENAI_API_KEY else "no key is set"
    provider = providers.read_short_form()
    host = "OpenAI" if provider.is_openai else providers.find_provider_host(provider)
    return f"{name} at {host}, summaries by {providers.summary_model(name)}; {key}"


def _describe_provider(provider: ModelProvider) -> str:
    names = ", ".join(model.name for model in provider.models)
    host = providers.find_provider_host(provider)
    key = "a key is set" if provider.secret else "no key is set"
    return f"{provider.name} at {host} has {names}; {key}"


def check_shutdowns() -> str:
    ending = providers.list_shutdowns()
    told = " ".join(providers.explain_shutdown(*each) for each in ending)
    if ending and ending[0][1] <= timezone.localdate():
        raise DoctorError(told)
    return told or "no model of the site has an announced end"


def check_summary_model() -> str:
    return _ask_model(providers.summary_model(providers.default_model()))


def check_providers() -> str:
    """One model of each."""
    if not settings.PROVIDERS:
        return "there is no PROVIDERS_FILE"
    return "; ".join(_ask_model(each.models[0].name) for each in settings.PROVIDERS)


def _ask_model(name: str) -> str:
    question = [HumanMessage("Answer with the word: ready")]
    try:
        reply = asyncio.run(streaming.fetch_reply(name, question, total=MODEL_TIMEOUT))
    except LLMError as error:
        raise DoctorError(f"{name}: {error.code}. {error.detail}") from None
    if not reply.text:
        raise DoctorError(f"{name} answered with nothing.")
    return f"{name} answered in {reply.response_metadata['total_ms']} ms"


CHECKS: dict[str, Check] = {
    "version": show_version,
    "settings": check_settings,
    "database": check_database,
    "migrations": check_migrations,
    "extras": show_extras,
    "search index": check_search_index,
    "channel layer": check_channel_layer,
    "lease clock": check_clock,
    "names": check_lookalikes,
    "limits": check_limits,
    "connections": check_connections,
    "static files": check_static_files,
    "model": check_model_settings,
    "model ends": check_shutdowns,
}
# What asks the database.
OF_DATABASE = {
    "extras",
    "migrations",
    "search index",
    "lease clock",
    "connections",
    "names",
}
MODEL_CHECKS: dict[str, Check] = {
    "chat model": lambda: _ask_model(providers.default_model()),
    "summary model": check_summary_model,
    "providers": check_providers,
}
