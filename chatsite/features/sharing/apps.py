"""The app of links to conversations, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SharingConfig(AppConfig):
    name = "chatsite.features.sharing"
    verbose_name = _("Share links")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from chatsite.ops import entrances, open_paths
        from memory.models.change import LEAF_ACTIONS

        from . import parts, services

        LEAF_ACTIONS[services.MADE] = _("made a link")
        LEAF_ACTIONS[services.REVOKED] = _("revoked a link")
        open_paths.paths.append("/s/")
        entrances.entrances.append(
            entrances.Entrance(
                starts=("/s/",),
                slot=entrances.Slot.LINK,
                pace="chatsite.features.sharing.pace.wait_for_address",
                tokens=entrances.NO_MODEL,
                access_log="none: whoever knows the link may read without a name",
            )
        )
        slots.register("conversation.menu", parts.draw_menu_item)
        slots.register("conversation.readers", parts.draw_readers)
        slots.register("message.menu", parts.draw_in_message_menu)
        slots.add_stylesheet("sharing/links.css", "dialog")
        plugins.access_log_names["share"] = _("share link")
        plugins.access_log_actions["revoke"] = _("revoked a link")
        plugins.group_permissions["moderators"].append("sharing.revoke_links")
        slots.register("account", parts.draw_account_section)
        plugins.account_rows["share_links"] = services.describe_shares
