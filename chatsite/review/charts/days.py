"""A range of whole days in the site's time zone, as figures are asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.db.models import Case, Expression, IntegerField, Q, Value, When
from django.http import QueryDict
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

DEFAULT_DAYS = 30
CHOICES = (7, 30, 90)
# No range is longer, so that no page reads more than a quarter's rows.
MAX_DAYS = 92
ISO = "%Y-%m-%d"


@dataclass(frozen=True, slots=True)
class Days:
    """From the first day to the last one, both of them whole."""

    first: date
    last: date

    @classmethod
    def until_today(cls, count: int = DEFAULT_DAYS) -> "Days":
        today = timezone.localdate()
        return cls(today - timedelta(days=count - 1), today)

    def __len__(self) -> int:
        return (self.last - self.first).days + 1

    def __iter__(self) -> Iterator[date]:
        return (self.first + timedelta(days=n) for n in range(len(self)))

    def parted(self) -> tuple["Days | None", "Days | None"]:
        """The days before today, and today with what may come after it."""
        today = timezone.localdate()
        yesterday = today - timedelta(days=1)
        before = Days(self.first, min(self.last, yesterday))
        after = Days(max(self.first, today), self.last)
        return (
            before if before.first <= before.last else None,
            after if after.first <= after.last else None,
        )

    def labels(self) -> list[str]:
        # Translators: a day on the axis of a chart, in Django's date format.
        return [date_format(day, _("j M")) for day in self]

    def during(self, field: str) -> Q:
        """A condition that an index over the field can answer."""
        end = _begin(self.last + timedelta(days=1))
        return Q(**{f"{field}__gte": _begin(self.first), f"{field}__lt": end})

    def number(self, field: str) -> Expression:
        """Which day of the range a row's time is on, from 0, as an expression.

        Only comparisons: SQLite's time zones are a Python function, which takes seconds
        for the rows of a large site.
        """
        starts = [_begin(day) for day in self]
        return _halve(field, starts, 0, len(starts))


def _begin(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()))


def _halve(field: str, starts: list[datetime], low: int, high: int) -> Expression:
    if high - low == 1:
        return Value(low, output_field=IntegerField())
    middle = (low + high) // 2
    return Case(
        When(
            **{f"{field}__lt": starts[middle]}, then=_halve(field, starts, low, middle)
        ),
        default=_halve(field, starts, middle, high),
        output_field=IntegerField(),
    )


def _date_field(label: Any) -> forms.DateField:
    # Browsers want this form of dates in every language.
    widget = forms.DateInput(format=ISO, attrs={"type": "date"})
    return forms.DateField(label=label, input_formats=[ISO], widget=widget)


class DaysForm(forms.Form):
    """The range asked for; without one the last thirty days."""

    first = _date_field(gettext_lazy("From"))
    last = _date_field(gettext_lazy("to"))

    def clean(self) -> dict[str, date]:
        values = super().clean()
        first, last = values.get("first"), values.get("last")
        if not first or not last:
            return values
        if last < first:
            raise forms.ValidationError(_("The last day is before the first one."))
        if (last - first).days >= MAX_DAYS:
            raise forms.ValidationError(
                ngettext(
                    "Choose at most %(days)s day.",
                    "Choose at most %(days)s days.",
                    MAX_DAYS,
                )
                % {"days": MAX_DAYS}
            )
        return values

    @classmethod
    def read(cls, data: QueryDict) -> tuple["DaysForm", Days]:
        """The form and the range; the default range if the form is not valid."""
        default = Days.until_today()
        if "first" not in data and "last" not in data:
            return cls(initial={"first": default.first, "last": default.last}), default
        form = cls({"first": data.get("first"), "last": data.get("last")})
        if not form.is_valid():
            return form, default
        return form, Days(form.cleaned_data["first"], form.cleaned_data["last"])
