"""The desk app: what staff review, in Django's own admin."""

from django.apps import AppConfig
from django.contrib import admin
from django.db.models import signals
from django.utils.translation import gettext_lazy as _


class DeskConfig(AppConfig):
    name = "chatsite.desk"
    verbose_name = _("Review")

    def ready(self) -> None:
        admin.site.site_header = admin.site.site_title = "Windowpane"
        admin.site.index_title = _("What people saw, what the model saw")
        from chatsite.chat import runner
        from memory.acts import message_deleted

        from . import naming
        from .acts import erasing
        from .trials import job, store

        naming.apply()

        runner.jobs.append(job.JOB)
        signals.pre_delete.connect(
            lambda sender, instance, **_: erasing.forget_log(instance),
            sender="memory.Conversation",
            weak=False,
        )
        message_deleted.connect(
            lambda sender, conversation, seq, **_: store.forget(conversation, seq),
            weak=False,
        )
