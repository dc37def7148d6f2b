"""A separate site for a benchmark of the endpoint, with keys of its users."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.databases import copy_sqlite
from tests.servers import Site

# Seconds that a start may take on a busy machine.
START = 1800
NO_LIMITS = {
    "MESSAGES_PER_MINUTE": "1000000",
    "CONVERSATIONS_PER_MINUTE": "1000000",
    "TOKENS_PER_DAY": "0",
    "TURNS_PER_USER": "1000",
    "PROCESSOR_SHARE_PER_USER": "100",
}


@dataclass(frozen=True)
class Place:
    site: Site
    keys: list[str]


@contextmanager
def make_place(provider_url: str, *, people: int = 1, **env: str) -> Iterator[Place]:
    """Run a site with SQLite and without limits of users."""
    with tempfile.TemporaryDirectory() as folder:
        site = Site(
            {
                "DEBUG": "false",
                "SECRET_KEY": "only-for-this-bench-" * 3,
                "ALLOWED_HOSTS": "127.0.0.1",
                "DATABASE_URL": copy_sqlite(Path(folder) / "site.sqlite3"),
                "STATIC_ROOT": folder,
                "OPENAI_API_KEY": "sk-bench",
                "OPENAI_BASE_URL": provider_url,
                "ANTHROPIC_API_KEY": "sk-bench",
                "ANTHROPIC_BASE_URL": provider_url,
                "CHAT_MODEL": "m",
                **NO_LIMITS,
                **env,
            }
        )
        site.start_timeout = START
        names = [f"user{number}" for number in range(people)]
        keys = []
        for name in names:
            site.manage("create_user", name, "correct horse battery")
            keys.append(site.manage("create_key", name).strip())
        with site:
            yield Place(site, keys)
