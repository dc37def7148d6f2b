"""The app of links to conversations, and what it adds to the core."""

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _


class SharingConfig(AppConfig):
    name = "chatsite.features.sharing"
    verbose_name = _("Share links")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import copies, guests, parts, services

        plugins.mount(
            "/s/",
            slot="LINK",
            pace="chatsite.features.sharing.pace.wait_for_address",
            access_log="none: everyone with the link may read without a name",
        )
        plugins.register_job(guests.sweep_guests, due=guests.find_expired_guests)
        if settings.SHARE_GUESTS:
            plugins.register_field("share", "copy", copies.make_copy_field)
        slots.register("conversation.menu", parts.draw_menu_item)
        slots.register("conversation.readers", parts.draw_readers)
        slots.register("message.menu", parts.draw_menu_item)
        slots.add_static_file("sharing/links.css", "dialog")
        slots.register("account.privacy", parts.draw_account_section)
        plugins.register_data(
            name="share_links",
            list_own=services.describe_shares,
            owner_actions={
                services.MADE: _("made a link"),
                services.REVOKED: _("revoked a link"),
            },
            staff_actions={"revoke": _("revoked a link")},
            log_names={"share": _("share link")},
            permissions={"moderators": ["sharing.revoke_links"]},
        )
