"""The app of budgets, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class BudgetsConfig(AppConfig):
    name = "chatsite.contrib.operators.budgets"
    verbose_name = _("Monthly budgets")
    admin_section = "chat"

    def ready(self) -> None:
        from prometheus_client import REGISTRY

        from chatsite import hooks

        from . import parts, services, watching

        hooks.spending_notes.append(services.note_use)
        hooks.spending_checks.append(services.check_budgets)
        hooks.person_parts.append(parts.draw_warning)
        hooks.account_sections.append(parts.draw_budgets_section)
        hooks.account_rows["monthly_use"] = services.list_use
        REGISTRY.register(watching.COLLECTOR)
