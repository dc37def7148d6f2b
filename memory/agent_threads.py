"""Memories of agents' threads in the site's database."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import IntegrityError, close_old_connections, transaction
from django.utils import timezone

from .agents.stores import ThreadMemory
from .models import AgentThread


class DjangoStore:
    """A `memory.agents.stores.MemoryStore` in the site's database.

    For agents that run beside the site, in its processes or in management commands.
    """

    def load(self, thread_id: str) -> ThreadMemory:
        with _hold_connection():
            row = AgentThread.objects.filter(key=thread_id).first()
        return ThreadMemory.load(row.memory) if row else ThreadMemory()

    def save(self, thread_id: str, memory: ThreadMemory, *, seen: int) -> bool:
        values = {"version": memory.version, "memory": memory.dump()}
        with _hold_connection():
            stored = AgentThread.objects.filter(key=thread_id, version=seen)
            if stored.update(**values, updated_at=timezone.now()):
                return True
            if seen:
                return False
            try:
                with transaction.atomic():
                    AgentThread.objects.create(key=thread_id, **values)
            except IntegrityError:
                return False
            return True

    def delete(self, thread_id: str) -> None:
        with _hold_connection():
            AgentThread.objects.filter(key=thread_id).delete()


@contextmanager
def _hold_connection() -> Iterator[None]:
    """Close stale connections: a thread without a request has to do so itself."""
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()
