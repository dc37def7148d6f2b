"""The app of links to conversations, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SharingConfig(AppConfig):
    name = "chatsite.features.sharing"
    verbose_name = _("Share links")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import plugins
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
        plugins.conversation_parts["menu"].append(parts.draw_menu_item)
        plugins.conversation_parts["readers"].append(parts.draw_readers)
        plugins.message_parts.append(parts.SHARE_UP_TO)
        plugins.first_use_styles["dialog"].append("sharing/links.css")
        plugins.access_log_names["share"] = _("share link")
        plugins.access_log_actions["revoke"] = _("revoked a link")
        plugins.group_permissions["moderators"].append("sharing.revoke_links")
        plugins.account_sections.append(parts.draw_account_section)
        plugins.account_rows["share_links"] = services.describe_shares
