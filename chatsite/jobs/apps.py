"""The app of background jobs; its table is in turns/models/."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "chatsite.jobs"

    def ready(self) -> None:
        from chatsite.turns import runner

        from . import summary_proposals, tasks  # noqa: F401  (registers a kind of job)

        runner.jobs.append(tasks.SWEEPER)
