"""The app of trials, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TrialsConfig(AppConfig):
    name = "chatsite.contrib.lab.trials"
    verbose_name = _("Trials")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import audit, events, export, job, parts, services, store
        from .models import Trial

        plugins.register_job(
            job.sweep_trials,
            release=store.TRIALS.release_rows,
            due=store.find_due_trials,
        )
        plugins.register_socket(
            events=[events.TrialEvent], commands={"watch_trial": events.read_watch}
        )
        slots.register("message.menu", parts.draw_try_again)
        slots.register("desk", parts.draw_ask)
        slots.add_static_file("trials/trials.css", "dialog")
        slots.add_static_file("trials/beside.css", "model")
        slots.register("next", parts.draw_next)
        plugins.register_data(
            name="trials",
            title=_("trials"),
            row=export.TrialRow,
            read=export.read_trials,
            write=export.write_trials,
            texts=Trial.TEXTS,
            forget=services.forget_trials,
            audit_rules=(audit.find_misplaced_trials,),
            owner_actions={
                services.USE_NEXT: _("sent one message differently"),
                services.FORGET_NEXT: _("sent the next message like all others"),
            },
        )
