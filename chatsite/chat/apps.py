"""The chat app: turns, the socket and the pages."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.utils.translation import gettext_lazy as _


class ChatConfig(AppConfig):
    name = "chatsite.chat"
    verbose_name = _("Chat")

    def ready(self) -> None:
        # They register the system checks and the kinds of background jobs.
        from . import checks, importing, job_tasks, proposing, runner  # noqa: F401

        runner.jobs += [job_tasks.SWEEPER, importing.JOB]

        from .database import watch_values

        connection_created.connect(watch_values)
