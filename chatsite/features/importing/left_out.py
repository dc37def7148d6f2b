"""The rows of disabled apps, which exports leave out: counted, never read."""

from collections.abc import Iterable
from functools import cache

from django.conf import settings
from django.db import connection

# What an export has of them, by the name of its list: the name in EXTRAS, and the rows
# of the conversations `c` or of the user.
_JOIN = "t JOIN memory_conversation c ON c.id = t.conversation_id"
IN_CONVERSATIONS = {
    "examples": ("lab", f"examples_example {_JOIN} WHERE t.author_id = c.owner_id AND"),
    "trials": ("lab", f"trials_trial {_JOIN} WHERE"),
}
IN_ACCOUNTS = {
    "api_keys": ("endpoint", "endpoint_apikey WHERE owner_id ="),
    "connections": ("organisation", "socialaccount_socialaccount WHERE user_id ="),
    "monthly_use": ("operators", "budgets_monthlyuse WHERE user_id ="),
}


def count_left_of_conversation(conversation_id: int) -> dict[str, int]:
    """Return {list: count} of the rows that an export leaves out."""
    return _count_left(IN_CONVERSATIONS, "c.id =", conversation_id)


def count_left_of_account(user_id: int) -> dict[str, int]:
    """Count what the download of an account leaves out beside its conversations."""
    return _count_left(IN_ACCOUNTS, "", user_id)


def count_left_of_download(user_id: int) -> dict[str, int]:
    """Count all that it leaves out."""
    own = "c.deleted_at IS NULL AND c.owner_id ="
    of_conversations = _count_left(IN_CONVERSATIONS, own, user_id)
    return of_conversations | count_left_of_account(user_id)


def _count_left(
    lists: dict[str, tuple[str, str]], condition: str, key: int
) -> dict[str, int]:
    counts = {}
    for name, (extra, rows) in lists.items():
        if extra in settings.EXTRAS or rows.split()[0] not in _list_tables():
            continue
        with connection.cursor() as cursor:
            query = f"SELECT COUNT(*) FROM {rows} {condition} %s"  # noqa: S608
            cursor.execute(query, [key])
            counts[name] = cursor.fetchone()[0]
    return {name: count for name, count in counts.items() if count}


@cache
def _list_tables() -> frozenset[str]:
    return frozenset(connection.introspection.table_names())


def name_extras_of(lists: Iterable[str]) -> list[str]:
    """Return the names that EXTRAS lacks of what brings these lists of exports."""
    brings = {IN_CONVERSATIONS[name][0] for name in lists if name in IN_CONVERSATIONS}
    return sorted(brings - {*settings.EXTRAS})
