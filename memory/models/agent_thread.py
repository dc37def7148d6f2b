"""The memory of agents' threads that is kept in this site."""

from django.db import models

from .private_row import PrivateRow


class AgentThread(PrivateRow):
    """The memory of one thread, as `memory.agents.stores.ThreadMemory` dumps it.

    It has summaries of messages that are kept elsewhere, so nothing of the site refers
    to it.
    """

    key = models.TextField(unique=True)
    version = models.PositiveIntegerField()
    memory = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)
