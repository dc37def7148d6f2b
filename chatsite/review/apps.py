"""The review app: what staff see, in Django's own admin."""

from django.apps import AppConfig
from django.db.models import signals
from django.utils.translation import gettext_lazy as _


class ReviewConfig(AppConfig):
    name = "chatsite.review"
    # The tables were named before the package; existing databases keep them.
    label = "desk"
    verbose_name = _("Review")

    def ready(self) -> None:
        from . import naming
        from .actions import erasing

        naming.apply_names()
        signals.pre_delete.connect(
            lambda sender, instance, **_: erasing.forget_log(instance),
            sender="memory.Conversation",
            weak=False,
        )
