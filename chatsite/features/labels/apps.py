"""The app of labels, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class LabelsConfig(AppConfig):
    name = "chatsite.features.labels"
    verbose_name = _("Labels")

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import export, listing, services

        plugins.register_source(listing.LIST_FILTER.name, listing.LIST_FILTER)
        slots.register("list.several", "labels/_several.html")
        slots.register("list.row", "labels/_row_menu.html")
        slots.add_static_file("labels/labels.css", "list-page")
        slots.add_static_file("labels/label-menus.css", "list menus")
        plugins.register_data(
            name="labels",
            form=export.LabelNames,
            read=export.read_names,
            write=export.write_names,
            copy=export.copy_labels,
            list_own=services.list_names,
            owner_actions={
                services.GIVEN: _("gave it a label"),
                services.TAKEN: _("took a label off it"),
            },
        )
