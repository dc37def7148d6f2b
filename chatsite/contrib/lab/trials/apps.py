"""The app of trials, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TrialsConfig(AppConfig):
    name = "chatsite.contrib.lab.trials"
    verbose_name = _("Trials")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import hooks
        from chatsite.turns import runner
        from memory.actions import message_deleted
        from memory.models.change import LEAF_ACTIONS

        from . import audit, events, export, job, parts, services

        message_deleted.connect(services.forget_trials)
        runner.jobs.append(job.JOB)
        LEAF_ACTIONS[services.USE_NEXT] = _("had one message sent differently")
        LEAF_ACTIONS[services.FORGET_NEXT] = _("had it sent like all others")
        hooks.event_kinds[events.TrialEvent.type] = events.TrialEvent
        hooks.command_readers["watch_trial"] = events.read_watch
        hooks.message_parts.append(parts.MENU_ITEM)
        hooks.first_use_styles["dialog"].append("trials/trials.css")
        hooks.context_parts.append(parts.draw_next)
        hooks.sent_parts.append(parts.draw_varied)
        hooks.export_sections.append(export.SECTION)
        hooks.audit_rules.append(audit.find_misplaced_trials)
