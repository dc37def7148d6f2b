"""Command that compares two stored requests, in figures and codes without texts."""

import json
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatsite.contrib.lab.compare.presenter import (
    Figures,
    comparison_to_json,
    present_figures,
)
from chatsite.contrib.lab.compare.sent_requests import read_compared
from memory.models import ModelCall


class Command(BaseCommand):
    help = "Compare two requests of a conversation, by the numbers of their rows."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("a", type=int, help="the earlier request's id")
        parser.add_argument("b", type=int, help="the later request's id")
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="as compare.json has it"
        )

    def handle(self, *args: Any, a: int, b: int, as_json: bool, **options: Any) -> None:
        before, now = _find_reply_request(a), _find_reply_request(b)
        if before.conversation_id != now.conversation_id:
            raise CommandError("The two requests are of different conversations.")
        known = {before.message.seq: before, now.message.seq: now}
        for call in known.values():
            call.conversation = now.conversation
        figures = present_figures(
            read_compared(now.conversation, now.message.seq, before.message.seq, known)
        )
        said = _describe_comparison(figures)
        if as_json:
            said = json.dumps(comparison_to_json(figures), ensure_ascii=False)
        self.stdout.write(said)


def _find_reply_request(pk: int) -> ModelCall:
    of_reply = {"purpose": ModelCall.Purpose.REPLY, "message__isnull": False}
    rows = ModelCall.objects.select_related("conversation", "message")
    if (found := rows.filter(pk=pk, **of_reply).first()) is None:
        raise CommandError(f"There is no request {pk} that a reply came from.")
    return found


def _describe_comparison(figures: Figures) -> str:
    place = figures.place
    lines = ["same" if figures.same else "different"]
    if place:
        lines.append(
            f"cache ends at message {place.message}, character {place.character}"
        )
    lines += [f"cause {each.code} {each.detail}".rstrip() for each in figures.causes]
    counts = Counter(pair.change for pair in figures.pairs)
    lines += [f"{count} {change}" for change, count in counts.items()]
    lines += [
        f"{each.name} {each.tokens} ({each.cached} cached)"
        for each in figures.costs.parts
    ]
    return "\n".join([*lines, f"uncounted {figures.costs.uncounted}"])
