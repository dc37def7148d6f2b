"""The desk: the next request as its owner changes it in the right pane."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from chatsite import plugins
from chatsite.llm import providers
from chatsite.turns import variations
from memory import context
from memory.engine.policy import LABELS
from memory.models import Change, Conversation, ModelCall
from memory.view.places import PlaceCounts
from memory.view.variation import find_varied, list_numbers, list_sent

from .sheets import WORDS

Action = Change.Action
# Acts of the owner after which the model reads something else; apps have their own.
CHANGING = (
    *(Action.PIN, Action.UNPIN, Action.LEAVE_OUT, Action.BRING_BACK),
    *(Action.REWRITE, Action.RESTORE, Action.REINSTATE, Action.REBUILD),
    *(Action.ACCEPT, Action.SYSTEM_PROMPT, Action.POLICY, Action.MODEL, Action.TOOLS),
)


@dataclass(frozen=True, slots=True)
class Desk:
    """The changes of the owner to the next request.

    `off`: the parts that are switched off, in words; `stays`: also for the requests
    after it; `acts`: the other changes since the last reply. `usual` and `tokens`: the
    estimated tokens without and with what is off. `reply`: the number of that reply.
    """

    off: tuple[str, ...]
    stays: bool
    acts: int
    usual: int
    tokens: int
    reply: int | None

    @property
    def changes(self) -> int:
        return len(self.off) + self.acts


def read_off(built: context.RequestContext) -> frozenset[str]:
    """Return the keys of what is switched off in the request."""
    return frozenset(find_varied(built.refs).get("off", ()))


def read_desk(
    conversation: Conversation, built: context.RequestContext, last: ModelCall | None
) -> Desk:
    """Return the changes of the next request; `last`: the last reply's, with_acts()."""
    return Desk(
        tuple(map(name_part, sorted(read_off(built)))),
        variations.is_kept(conversation),
        last.acts if last else 0,
        built.usual.tokens if built.usual else built.tokens,
        built.tokens,
        last.seq if last else None,
    )


def with_acts(calls: QuerySet[ModelCall]) -> QuerySet[ModelCall]:
    """Annotate calls with `seq`, their reply's number, and the `acts` since."""
    of_apps = chain.from_iterable(each.changing_actions for each in plugins.app_data)
    since = Change.objects.filter(
        conversation=OuterRef("conversation"),
        created_at__gt=OuterRef("created_at"),
        action__in=[*CHANGING, *of_apps],
    )
    acts = since.order_by().values("conversation").annotate(count=Count("pk"))
    return calls.annotate(
        seq=F("message__seq"), acts=Coalesce(Subquery(acts.values("count")), 0)
    )


def count_off(counts: PlaceCounts, built: context.RequestContext) -> PlaceCounts:
    """Return the counts with the messages that are switched off apart."""
    usual = built.usual or built
    off = list_sent(usual.refs) - list_sent(built.refs)
    behind = off & list_numbers(usual.refs["window"])
    window = counts.get("window", 0) - len(behind)
    found = {**counts, "window": window, "off": len(behind)}
    return PlaceCounts(found, counts.read)


def name_part(key: str) -> str:
    """Return the part of this key in words."""
    kind, _dash, name = key.partition("-")
    if kind == "summary":
        return _("summary v%(version)s") % {"version": name}
    if kind == "message":
        return f"#{name}"
    words = {"rule": _("one rule"), "fact": _("one fact")}
    return words.get(kind) or str(WORDS.get(kind, key)).lower()


def describe_changes(
    changes: Mapping[str, Any], usual: Sequence[str] | None = None
) -> list[str]:
    """Return the changes of a variation in words; `usual` where there are none."""
    if usual is None:
        asked = _("with what the model reads now"), _("unchanged, asked again")
        usual = [asked[not changes.get("now")]]
    return list(_describe_each(changes)) or [*usual]


def _describe_each(changes: Mapping[str, Any]) -> Iterator[str]:
    if model := changes.get("model"):
        yield _("model %(model)s") % {"model": providers.name_model(model)}
    if (temperature := changes.get("temperature")) is not None:
        yield _("temperature %(number)s") % {"number": temperature}
    if preset := changes.get("preset"):
        yield _("memory settings: %(name)s") % {"name": _(LABELS.get(preset, preset))}
    yield from _describe_without(changes)
    for name, words in (
        ("edited", _("message #%(seq)s reworded")),
        ("left_out", _("without message #%(seq)s")),
        ("brought_back", _("with message #%(seq)s brought back")),
    ):
        if seq := changes.get(name):
            yield words % {"seq": seq}


def _describe_without(changes: Mapping[str, Any]) -> Iterator[str]:
    if changes.get("without_recall"):
        yield _("without notes from earlier messages")
    if changes.get("without_summaries"):
        yield _("without summaries")
    for key in changes.get("off", ()):
        yield _("without %(part)s") % {"part": name_part(key)}
