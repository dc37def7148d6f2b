"""The app of pieces of code, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CodeBlocksConfig(AppConfig):
    name = "chatsite.features.code_blocks"
    verbose_name = _("Pieces of code")

    def ready(self) -> None:
        from chatsite import slots

        slots.register("conversation.head", "code_blocks/_words.html")
        slots.add_static_file("code_blocks/blocks.js", "conversation-page")
        slots.add_static_file("code_blocks/dress.js", "blocks")
        slots.add_static_file("code_blocks/blocks.css", "blocks")
