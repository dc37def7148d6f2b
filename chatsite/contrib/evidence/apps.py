"""The app of evidence, and what it adds to the core."""

from django.apps import AppConfig, apps
from django.utils.translation import gettext_lazy as _


class EvidenceConfig(AppConfig):
    name = "chatsite.contrib.evidence"
    verbose_name = _("Evidence")

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import parts, views

        plugins.mount("/.well-known/", access_log="none: the keys are public")
        slots.register("conversation.export", parts.draw_evidence_link)
        slots.register("message.more", parts.draw_reply_link)
        slots.register("staff.links", "evidence/_staff_link.html")
        if apps.is_installed("chatsite.features.sharing"):
            from . import link_evidence

            plugins.register_field("share", "evidence", link_evidence.make_field)
            slots.register("share.facts", link_evidence.draw_fact)
            slots.register("shared.reply", link_evidence.draw_verification)
        plugins.register_data(
            name="signing_keys",
            staff_actions={views.ACTION: _("downloaded evidence")},
            log_names={"evidence": _("evidence")},
        )
