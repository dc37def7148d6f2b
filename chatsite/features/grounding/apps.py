"""The app of where answers come from, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class GroundingConfig(AppConfig):
    name = "chatsite.features.grounding"
    verbose_name = _("Where answers come from")

    def ready(self) -> None:
        from chatsite import slots

        slots.register("sent.below", "grounding/_of_reply.html")
        for place in ("transcript", "model"):
            slots.add_static_file("grounding/grounding.css", place)
            slots.add_static_file("grounding/grounding.js", place)
