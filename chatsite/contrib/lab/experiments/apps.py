"""The app of policy experiments, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ExperimentsConfig(AppConfig):
    name = "chatsite.contrib.lab.experiments"
    verbose_name = _("Policy experiments")
    admin_section = "desk"

    def ready(self) -> None:
        from chatsite import hooks
        from chatsite.turns import runner
        from memory.actions import message_deleted

        from . import job, store
        from .models import Experiment

        message_deleted.connect(store.forget)
        runner.jobs.append(job.JOB)
        hooks.staff_links["experiments"] = _("Policy experiments")
        hooks.access_log_actions["try"] = _("tried another policy")
        hooks.access_log_names["experiment"] = _("experiment")
        # As it was once called.
        hooks.access_log_names["trial"] = _("experiment")
        hooks.access_log_names["sample"] = _("experiment over a sample")
        hooks.spending_tables.append(Experiment)
