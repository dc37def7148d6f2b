"""The app of background jobs; its table is in turns/models/."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "chatsite.jobs"

    def ready(self) -> None:
        from chatsite.turns import runner
        from memory.actions import message_deleted

        from . import leavers, summary_proposals, tasks

        message_deleted.connect(summary_proposals.drop_proposal)

        # First, so that nothing of a leaver is started before it is ended.
        runner.jobs[:0] = leavers.JOBS
        runner.jobs.append(tasks.SWEEPER)
