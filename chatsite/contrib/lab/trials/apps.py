"""The app of trials, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TrialsConfig(AppConfig):
    name = "chatsite.contrib.lab.trials"
    verbose_name = _("Trials")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from chatsite.turns import runner
        from memory.actions import message_deleted
        from memory.models.change import LEAF_ACTIONS

        from . import audit, events, export, job, parts, services

        message_deleted.connect(services.forget_trials)
        runner.jobs.append(job.JOB)
        LEAF_ACTIONS[services.USE_NEXT] = _("had one message sent differently")
        LEAF_ACTIONS[services.FORGET_NEXT] = _("had it sent like all others")
        plugins.event_kinds[events.TrialEvent.type] = events.TrialEvent
        plugins.command_readers["watch_trial"] = events.read_watch
        slots.register("message.menu", parts.draw_try_again)
        slots.add_stylesheet("trials/trials.css", "dialog")
        slots.register("next", parts.draw_next)
        slots.register("sent", parts.draw_varied)
        plugins.export_sections.append(export.SECTION)
        plugins.audit_rules.append(audit.find_misplaced_trials)
