"""The desk app: what staff review, in Django's own admin."""

from django.apps import AppConfig
from django.contrib import admin
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
        from .trials import job, store

        naming.apply()

        runner.jobs.append(job.JOB)
        message_deleted.connect(
            lambda sender, conversation, seq, **_: store.forget(conversation, seq),
            weak=False,
        )
