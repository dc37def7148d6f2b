"""The app of imports, exports and copies; no tables."""

from django.apps import AppConfig


class TransferConfig(AppConfig):
    name = "chatsite.transfer"

    def ready(self) -> None:
        from chatsite.turns import runner

        from . import importing

        runner.jobs.append(importing.JOB)
