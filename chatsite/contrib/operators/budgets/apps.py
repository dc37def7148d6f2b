"""The app of budgets, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class BudgetsConfig(AppConfig):
    name = "chatsite.contrib.operators.budgets"
    verbose_name = _("Monthly budgets")
    admin_section = "chat"

    def ready(self) -> None:
        from prometheus_client import REGISTRY

        from chatsite import plugins, slots

        from . import metrics, parts, services

        plugins.call_charged.connect(services.note_use)
        plugins.register_guard("spend", services.check_budgets)
        slots.register("user", parts.draw_warning)
        slots.register("account.you", parts.draw_budgets_section)
        REGISTRY.register(metrics.COLLECTOR)
        plugins.register_data(name="monthly_use", list_own=services.list_use)
