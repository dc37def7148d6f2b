"""The app of labels, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class LabelsConfig(AppConfig):
    name = "chatsite.features.labels"
    verbose_name = _("Labels")

    def ready(self) -> None:
        from chatsite import plugins, slots
        from memory.models.change import LEAF_ACTIONS

        from . import export, listing, services

        LEAF_ACTIONS[services.GIVEN] = _("gave it a label")
        LEAF_ACTIONS[services.TAKEN] = _("took a label off it")
        plugins.list_filters.append(listing.LIST_FILTER)
        slots.register("list.several", "labels/_several.html")
        slots.register("list.row", "labels/_row_menu.html")
        slots.add_stylesheet("labels/labels.css", "list")
        slots.add_stylesheet("labels/label-menus.css", "list menus")
        plugins.conversation_fields.append(export.FIELD)
        plugins.branch_parts.append(export.copy_labels)
        plugins.account_rows["labels"] = services.list_names
