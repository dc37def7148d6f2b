"""The app of imports and exports, and what it adds to the core; no tables."""

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _


class ImportingConfig(AppConfig):
    name = "chatsite.features.importing"

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import parts, worker
        from .exporting import for_staff
        from .files import reading
        from .storing import ACTION

        plugins.mount(
            "/import/",
            # With the rest of the form.
            max_bytes=lambda: (settings.IMPORT_MAX_MB + 1) * 1024**2,
        )
        plugins.register_job(worker.sweep_imports, release=worker.end_imports)
        link = slots.make_link("import", _("Import conversations"))
        slots.register("user.menu", link)
        slots.register("conversation.export", parts.draw_menu_items)
        slots.register("account.privacy", parts.draw_data_section)
        slots.register("staff.actions", "importing/_staff_buttons.html")
        plugins.register_data(
            owner_actions={ACTION: _("imported it")},
            staff_actions={for_staff.ACTION: _("exported")},
            log_names={"export": _("export")},
            sources=reading.SITES,
        )
