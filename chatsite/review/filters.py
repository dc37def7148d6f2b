"""Filters of the admin's lists."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Window
from django.db.models.functions import Lag
from django.http import HttpRequest
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

from chatsite.llm import providers
from chatsite.pages.forms import preset_name
from chatsite.turns.models import Turn
from memory.compaction import lease
from memory.engine.policy import DEFAULT_PRESET, PRESETS
from memory.models import Message, Summary

from .labels import TRIGGERS
from .models import Review
from .pages import query_number
from .redaction import select_lasting

Lookups = list[tuple[Any, Any]]
# Levels that a filter names one by one.
LEVELS = 4
MAX_STAFF = 100
# Owners are named whose conversations are among the newest.
NEWEST = 1_000
MAX_OWNERS = 100
PRESET_LABELS = {name: lazy(preset_name, str)(name) for name in PRESETS}


class ChoiceFilter(admin.SimpleListFilter):
    """A filter by one of a few conditions, each with its name in the address."""

    # The label and the condition behind each name.
    conditions: ClassVar[dict[str, tuple[Any, Q]]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        return [(name, label) for name, (label, _q) in self.conditions.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        _label, condition = self.conditions.get(self.value(), ("", Q()))
        return queryset.filter(condition)


def match_column(column: str, labels: Mapping[str, Any]) -> dict[str, tuple[Any, Q]]:
    """Return the conditions of a filter by the values of a column."""
    return {name: (label, Q(**{column: name})) for name, label in labels.items()}


class SetFilter(admin.EmptyFieldListFilter):
    """A filter by whether a field has a value: yes or no, not Empty and Not empty."""

    # Of times, what has happened then.
    TITLES: ClassVar = {
        "archived_at": _("archived"),
        "pinned_at": _("pinned"),
        "excluded_at": _("left out"),
        "superseded_at": _("replaced"),
        "revoked_at": _("revoked"),
    }

    def __init__(self, field: Any, *args: Any, **named: Any) -> None:
        super().__init__(field, *args, **named)
        self.title = self.TITLES.get(field.name, self.title)

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        every, empty, other = super().choices(changelist)
        yield from (every, empty | {"display": _("No")}, other | {"display": _("Yes")})


class CompactionFilter(ChoiceFilter):
    title = _("state of summaries")
    parameter_name = "compaction"
    conditions: ClassVar = {
        "working": (_("working"), Q(compaction_failures=0)),
        "failing": (
            _("failing"),
            Q(compaction_failures__range=(1, lease.MAX_FAILURES - 1)),
        ),
        "stopped": (_("Stopped"), Q(compaction_failures__gte=lease.MAX_FAILURES)),
    }


class OwnerFilter(admin.SimpleListFilter):
    """A filter by owner: those with the latest changes, and the one in the address."""

    title = _("owner")
    parameter_name = "owner"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        newest = select_lasting().order_by("-updated_at", "-id").values("owner")
        wanted = Q(pk__in=newest[:NEWEST])
        if chosen := query_number(request, self.parameter_name):
            wanted |= Q(pk=chosen)
        people = get_user_model().objects.filter(wanted).order_by("username")
        return list(people.values_list("pk", "username")[:MAX_OWNERS])

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        chosen = query_number(request, self.parameter_name)
        return queryset.filter(owner=chosen) if chosen else queryset


class ModelFilter(admin.SimpleListFilter):
    """A filter by the model that a conversation has, or would have if it names none."""

    title = _("model")
    parameter_name = "model"
    OTHER = "*"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        names = providers.list_models()
        labels = ((name, providers.name_model(name)) for name in names)
        return [*labels, (self.OTHER, _("another one"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        models = providers.list_models()
        if self.value() == self.OTHER:
            return queryset.exclude(model__in=["", *models])
        if self.value() not in models:
            return queryset
        is_default = self.value() == providers.default_model()
        unnamed = Q(model="") if is_default else Q()
        return queryset.filter(Q(model=self.value()) | unnamed)


class PolicyFilter(ChoiceFilter):
    """A filter by the preset of the policy, which the list has as `preset_name`."""

    title = _("preset")
    parameter_name = "preset"
    conditions: ClassVar = {
        **match_column("preset_name", PRESET_LABELS),
        "other": (_("not valid"), ~Q(preset_name__in=["", *PRESETS])),
    }
    usual = conditions[DEFAULT_PRESET]
    conditions[DEFAULT_PRESET] = (usual[0], usual[1] | Q(preset_name=""))


def with_failed_turn() -> QuerySet[Turn]:
    return Turn.objects.filter(
        conversation=OuterRef("pk"), state__one_of=Turn.FAILING
    ).order_by()


class FailedTurnFilter(ChoiceFilter):
    title = _("failed turns")
    parameter_name = "failed"
    conditions: ClassVar = {
        "yes": (_("with a failed turn"), Q(Exists(with_failed_turn()))),
        "no": (_("without"), ~Q(Exists(with_failed_turn()))),
    }


class TriggerFilter(ChoiceFilter):
    title = _("trigger")
    parameter_name = "trigger"
    conditions = match_column("trigger_kind", TRIGGERS)


class AuthorFilter(ChoiceFilter):
    title = _("author")
    parameter_name = "author"
    conditions: ClassVar = {
        "person": (_("a user"), Q(author__isnull=False)),
        "automatic": (_("automatic"), Q(author=None)),
    }


class PresetFilter(ChoiceFilter):
    title = _("preset")
    parameter_name = "preset"
    conditions: ClassVar = {
        **match_column("preset", PRESET_LABELS),
        "unknown": (_("not known"), Q(preset="")),
    }


class LevelFilter(ChoiceFilter):
    title = _("level")
    parameter_name = "level"
    conditions: ClassVar = {
        **{str(level): (str(level), Q(level=level)) for level in range(LEVELS)},
        "more": (f"{LEVELS}+", Q(level__gte=LEVELS)),
    }


class StatusFilter(ChoiceFilter):
    title = _("status")
    parameter_name = "status"
    conditions = match_column("status", dict(Summary.Status.choices))


def after_a_gap() -> QuerySet[Summary]:
    """Summaries in force that do not follow on the one before."""
    before = Window(Lag("last_seq", default=0), "conversation", F("first_seq").asc())
    in_force = Summary.objects.filter(status=Summary.Status.ACTIVE).order_by()
    return in_force.annotate(end=before).exclude(first_seq=F("end") + 1)


class FlagFilter(ChoiceFilter):
    title = _("flags")
    parameter_name = "flag"
    conditions: ClassVar = {
        "unsupported": (
            _("Facts not found in the source"),
            Q(unsupported__isnull=False),
        ),
        "rewritten": (_("Made of an older summary"), Q(generation__gt=1)),
        "gap": (_("gap before it"), Q(pk__in=after_a_gap().values("pk"))),
    }


class ReviewFilter(admin.SimpleListFilter):
    """Reviewed as it is now, changed since its latest review, or never reviewed."""

    title = _("reviewed")
    parameter_name = "reviewed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        return [
            ("yes", _("reviewed")),
            ("changed", _("changed since review")),
            ("no", _("not yet")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        reviews = Review.objects.filter(conversation=OuterRef("pk")).order_by("-id")
        if self.value() == "no":
            return queryset.filter(~Exists(reviews))
        if self.value() not in ("yes", "changed"):
            return queryset
        rows = queryset.annotate(
            reviewed_version=Subquery(reviews.values("memory_version")[:1]),
            reviewed_seq=Subquery(reviews.values("last_seq")[:1]),
        ).filter(reviewed_seq__isnull=False)
        newer = Message.objects.filter(
            conversation=OuterRef("pk"), seq__gt=OuterRef("reviewed_seq")
        )
        changed = ~Q(memory_version=F("reviewed_version")) | Exists(newer)
        return rows.filter(changed if self.value() == "changed" else ~changed)


class StaffFilter(admin.SimpleListFilter):
    """A filter by member of the staff; one who has left is found by name."""

    title = _("who")
    parameter_name = "staff"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        staff = get_user_model().objects.filter(is_staff=True).order_by("username")
        return list(staff.values_list("pk", "username")[:MAX_STAFF])

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        known = {str(pk) for pk, _name in self.lookup_choices}
        return queryset.filter(user=self.value()) if self.value() in known else queryset
