"""The memory of agents' threads that is kept in this site."""

from django.db import models


class AgentThread(models.Model):
    """The memory of one thread, as `memory.agents.stores.ThreadMemory` dumps it.

    It has summaries of messages that are kept elsewhere, so nothing of the site refers
    to it.
    """

    key = models.TextField(unique=True)
    version = models.PositiveIntegerField()
    memory = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        # Never the key: without a thread id it is a digest of what someone wrote.
        return f"AgentThread {self.pk}"
