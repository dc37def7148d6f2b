"""The app of branches shown as one conversation, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TreeConfig(AppConfig):
    name = "chatsite.features.tree"
    verbose_name = _("Branches")
    admin_section = "memory"

    def ready(self) -> None:
        from django.db.models.signals import post_delete

        from chatsite import plugins, slots
        from memory.models import Conversation
        from memory.search import conversation_search

        from . import audit, export, listing, parts, services

        slots.register("message.below", parts.draw_fork, rows=parts.ROWS)
        slots.register("conversation.editing", parts.draw_branch_choice)
        slots.register("conversation.look", parts.draw_map_item)
        conversation_search.copies.append(listing.COPIES)
        post_delete.connect(services.clear_erased, sender=Conversation)
        plugins.register_data(
            name="branches",
            title=_("branches"),
            row=export.PartingRow,
            read=export.read_parting,
            write=export.write_parting,
            forget=services.forget_copies,
            audit_rules=(audit.find_unlisted,),
        )
