"""The app of policy experiments, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ExperimentsConfig(AppConfig):
    name = "chatsite.contrib.lab.experiments"
    verbose_name = _("Policy experiments")
    admin_section = "desk"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from chatsite.turns import runner
        from memory.actions import message_deleted

        from . import job, store
        from .models import Experiment

        message_deleted.connect(store.forget)
        runner.jobs.append(job.JOB)
        slots.register("staff.links", "experiments/_link.html")
        plugins.access_log_actions["try"] = _("tried another policy")
        plugins.access_log_names["experiment"] = _("experiment")
        # As it was once called.
        plugins.access_log_names["trial"] = _("experiment")
        plugins.access_log_names["sample"] = _("experiment over a sample")
        plugins.spending_tables.append(Experiment)
