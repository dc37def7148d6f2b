"""The number of budgets that are nearly or wholly used up, for `/metrics`."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily

from memory.database import TROUBLE

from . import services
from .models import Budget


class _Budgets:
    """A collector of the budgets of all processes, read on demand."""

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing: else they would be read on registration."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            found = services.measure_budgets(Budget.objects.all())
        except TROUBLE:
            return
        used_up = sum(each.is_used_up for each in found)
        low = sum(each.is_low for each in found) - used_up
        family = GaugeMetricFamily(
            "windowpane_budgets",
            "Monthly budgets, by how far they are.",
            labels=["state"],
        )
        family.add_metric(["ok"], len(found) - low - used_up)
        family.add_metric(["low"], low)
        family.add_metric(["used_up"], used_up)
        yield family


COLLECTOR = _Budgets()
