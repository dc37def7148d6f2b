"""Measures a memory policy on recorded conversations, without database or provider."""

import asyncio
import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from pydantic import ValidationError

from chatsite.llm import providers
from chatsite.llm.demo.chat_model import DemoChatModel
from memory.engine.exceptions import PolicyError
from memory.engine.policy import DEFAULT_PRESET, PRESETS, Policy
from memory.evaluation.replay import (
    RecordedConversation,
    read_recordings,
    replay_recordings,
)

SUMMARY_TOKENS = 256


class Command(BaseCommand):
    help = "Plays recorded conversations through the memory and says what it costs."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="JSON: a list of conversations.")
        parser.add_argument("--preset", choices=PRESETS, default=DEFAULT_PRESET)
        parser.add_argument(
            "--policy",
            default="{}",
            metavar="JSON",
            help="Settings over the preset, as under “Memory settings…” of a "
            'conversation: {"trigger": ["topic", 0.7], "strategy": "window"}.',
        )
        parser.add_argument(
            "--context-window",
            type=int,
            metavar="TOKENS",
            default=providers.context_window(providers.DEMO),
            help="What the model takes: messages that are larger are counted.",
        )
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(
        self,
        *,
        file: Path,
        preset: str,
        policy: str,
        context_window: int,
        as_json: bool,
        **options: Any,
    ) -> None:
        own = read_settings(policy)
        values = {"preset": preset, "max_summary_tokens": SUMMARY_TOKENS, **own}
        try:
            tried = Policy.load(values)
        except PolicyError as error:
            raise CommandError(f"--policy: {error}.") from error
        report = asyncio.run(
            replay_recordings(
                read_recording_file(file),
                tried,
                DemoChatModel(tokens_per_second=0).ainvoke,
                system_prompt=settings.SYSTEM_PROMPT,
                context_window=context_window,
            )
        )
        # What was tried beside the preset, so that a stored report says it all.
        report |= {"policy": own} if own else {}
        self.stdout.write(
            json.dumps(report, indent=2) if as_json else describe_report(report)
        )


def read_settings(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"--policy: this is no JSON: {error}.") from error
    if not isinstance(value, dict):
        raise CommandError('--policy: expected an object such as {"batch": 2}.')
    return value


def read_recording_file(file: Path) -> list[RecordedConversation]:
    try:
        return read_recordings(file.read_bytes())
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}.") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise CommandError(f"{file}: {place}: {first['msg']}.") from error


def describe_report(report: dict[str, Any]) -> str:
    """One line per number, a column per conversation and one for the total."""
    columns = [*report["conversations"], {"id": "total"} | report["total"]]
    keys = ["id", *report["total"]]
    rows = [[key, *(show_figure(column[key]) for column in columns)] for key in keys]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    own = f" with {json.dumps(report['policy'])}" if "policy" in report else ""
    heading = f"Preset {report['preset']}{own}. Tokens are {report['tokens']}."
    return "\n".join([heading, "", *lines])


def show_figure(value: object) -> str:
    return "-" if value is None else str(value)
