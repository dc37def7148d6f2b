"""Filters of the admin's lists."""

from typing import Any

from django.contrib import admin
from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import Coalesce, Lag
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from memory.compaction import compactor
from memory.engine.policy import PRESETS, TRIGGER_KINDS
from memory.models import Summary

from .labels import trigger_words

Filters = list[tuple[str, Any]]
# Levels that a filter names one by one.
LEVELS = 4


OTHER_KINDS = ("manual", "change", "edit", "restore")


class ChoiceFilter(admin.SimpleListFilter):
    """One of a few conditions, each with its name in the address."""

    def conditions(self) -> dict[str, tuple[Any, Q]]:
        """The words and the condition behind each name."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> Filters:
        return [(name, words) for name, (words, _q) in self.conditions().items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        _words, condition = self.conditions().get(self.value(), ("", Q()))
        return queryset.filter(condition)


class CompactionFilter(ChoiceFilter):
    title = _("summarising")
    parameter_name = "compaction"

    def conditions(self) -> dict[str, tuple[Any, Q]]:
        failing = Q(compaction_failures__range=(1, compactor.MAX_FAILURES - 1))
        return {
            "working": (_("Working"), Q(compaction_failures=0)),
            "failing": (_("Failing"), failing),
            "stopped": (
                _("Stopped"),
                Q(compaction_failures__gte=compactor.MAX_FAILURES),
            ),
        }


class TriggerFilter(ChoiceFilter):
    title = _("trigger")
    parameter_name = "trigger"

    def conditions(self) -> dict[str, tuple[Any, Q]]:
        kinds = (*TRIGGER_KINDS, "summary_tokens", "room", *OTHER_KINDS)
        return {kind: (trigger_words(kind), Q(trigger_kind=kind)) for kind in kinds}


class PresetFilter(ChoiceFilter):
    title = _("preset")
    parameter_name = "preset"

    def conditions(self) -> dict[str, tuple[Any, Q]]:
        known = {name: (name, Q(preset=name)) for name in PRESETS}
        return {**known, "unknown": (_("not known"), Q(preset=""))}


class LevelFilter(ChoiceFilter):
    title = _("level")
    parameter_name = "level"

    def conditions(self) -> dict[str, tuple[Any, Q]]:
        known = {str(level): (str(level), Q(level=level)) for level in range(LEVELS)}
        more = _("%(level)s and more") % {"level": LEVELS}
        return {**known, "more": (more, Q(level__gte=LEVELS))}


class FlagFilter(ChoiceFilter):
    title = _("flags")
    parameter_name = "flag"

    def conditions(self) -> dict[str, tuple[Any, Q]]:
        return {
            "unsupported": (
                _("Facts not found in the source"),
                Q(unsupported__isnull=False),
            ),
            "rewritten": (_("Made of an older summary"), Q(generation__gt=1)),
            "gap": (_("Gap before it"), Q(pk__in=after_a_gap())),
        }


def after_a_gap() -> QuerySet:
    """The keys of summaries in force that do not follow on the one before."""
    before = Window(Lag("last_seq"), "conversation", F("first_seq").asc())
    in_force = Summary.objects.filter(status="active").order_by()
    rows = in_force.annotate(end=Coalesce(before, 0))
    return rows.exclude(first_seq=F("end") + 1).values("pk")
