"""The app of policy experiments, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ExperimentsConfig(AppConfig):
    name = "chatsite.contrib.lab.experiments"
    verbose_name = _("Policy experiments")
    admin_section = "desk"

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import job, store
        from .models import Experiment

        plugins.register_job(
            job.sweep, release=store.EXPERIMENTS.release_rows, due=store.due
        )
        slots.register("staff.links", "experiments/_link.html")
        plugins.register_data(
            forget=store.forget,
            spending=Experiment,
            staff_actions={"try": _("tried another policy")},
            log_names={
                "experiment": _("experiment"),
                "trial": _("experiment"),  # as it was once called
                "sample": _("experiment over a sample"),
            },
        )
