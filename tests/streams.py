"""Tests and the runs that they belong to: the one module that decides it.

Each test belongs to one tier: `first` (make test), `smoke` (what make test takes of the
browser and of faults), `rest` (make test-all) or `weekly` (make test-weekly). And every
test runs on SQLite. Here is what runs on PostgreSQL as well, because its SQL, its locks
and transactions or its migrations matter to what it proves. docs/testing.md says why.
"""

import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TIERS = ("first", "smoke", "rest", "weekly")
# What no change of the site breaks: tests of tests and of measurements. And what takes
# minutes, and breaks with a migration only.
WEEKLY = (
    "bench/",
    "test_other_suites.py",
    "test_plugin.py",
    "test_unsteady.py",
    "test_upgrade.py::test_killed_at_any_moment_it_goes_on_when_run_again",
)
# Every page in a browser, and one process that is killed.
SMOKE = (
    "browser/test_smoke.py",
    "faults/test_sqlite.py::test_the_same_process_goes_on_when_it_is_back[9]",
)
# Files with tests that take only some of their rounds, and all in `make test-weekly`
# (tests/rounds.py).
RANDOM = (
    "chatsite/contrib/endpoint/identity/test_generated_conversations.py",
    "chatsite/contrib/endpoint/lineage/test_provider_reports.py",
    "chatsite/contrib/evidence/test_verify.py",
    "chatsite/test_random_actions.py",
)
# Apps that are off until they are named.
CONTRIB = ("chatsite/contrib/",)
# All tests with these marks are there.
FOLDERS = {"fault": ("faults/",), "browser": ("browser/",), "random": RANDOM} | {
    tier: tuple(name.partition("::")[0] for name in names)
    for tier, names in (("smoke", SMOKE), ("weekly", WEEKLY))
}
# In files with tests that say themselves on which database they run.
OWN_MARK = re.compile(r"mark\.(database\(|postgresql)")
# Its locks, leases, migrations and own words: `make test` runs them there, too.
DIALECT = (
    "chatsite/features/attachments/test_migrations.py",
    "chatsite/features/feedback/test_migrations.py",
    "chatsite/features/labels/test_migrations.py",
    "chatsite/features/rules/test_migrations.py",
    "chatsite/features/sharing/test_migrations.py",
    "chatsite/features/tools/test_late_results.py",
    "chatsite/features/tools/test_migrations.py",
    "chatsite/features/tools/test_tool_takeover.py",
    "chatsite/jobs/test_leavers.py",
    "chatsite/jobs/test_queue.py",
    "chatsite/jobs/test_tasks.py",
    "chatsite/jobs/test_worker.py",
    "chatsite/protocol/test_layer.py",
    "chatsite/turns/test_checkpoints.py",
    "chatsite/turns/test_lifecycle.py",
    "chatsite/turns/test_limits.py",
    "memory/test_migrations.py",
    "memory/test_recall.py",
    "memory/test_sql.py",
)
POSTGRESQL = (
    *DIALECT,
    # Rows of messages, summaries and calls; search, audit and migrations.
    "memory/test_actions.py",
    "memory/test_agent_threads.py",
    "memory/test_audit.py",
    "memory/test_calibration.py",
    "memory/test_compaction.py",
    "memory/test_context.py",
    "memory/test_erasing.py",
    "memory/test_library.py",
    "memory/test_mending.py",
    "memory/test_prompts.py",
    "memory/test_property.py",
    "memory/test_proposals.py",
    "memory/test_ranges.py",
    "memory/test_signatures.py",
    "memory/test_temporary.py",
    # Claims, leases and deadlines; two processes at the same rows.
    "chatsite/jobs/",
    "chatsite/features/feedback/",
    "chatsite/features/labels/",
    "chatsite/features/rules/test_requests.py",
    "chatsite/features/rules/test_store.py",
    "chatsite/features/sharing/test_services.py",
    "chatsite/turns/test_audit.py",
    "chatsite/turns/test_deleting.py",
    "chatsite/test_random_actions.py",
    "test_left_rows.py",
    "chatsite/turns/test_spending.py",
    "chatsite/contrib/lab/experiments/test_migrations.py",
    "chatsite/live/test_socket.py",
    "chatsite/live/test_two_processes.py",
    "chatsite/live/test_watcher.py",
    # Counts, groups, filters and pages of rows that are put together in SQL.
    "chatsite/accounts/test_account.py",
    "chatsite/accounts/test_names.py",
    "chatsite/accounts/test_leaving.py::TestNothingIsLeft",
    "chatsite/accounts/test_leaving.py::TestWhileThingsGoOn",
    "chatsite/ops/test_commands.py",
    "chatsite/ops/test_health.py",
    "chatsite/pages/test_conversation_list.py",
    "chatsite/pages/test_long_conversation.py",
    "chatsite/pages/test_several.py",
    "chatsite/pages/test_temporary.py",
    # One generated conversation with all causes, and one with all that is exported.
    "chatsite/contrib/lab/compare/test_generated.py::test_the_planted_causes_are_named_and_no_others[0]",
    "chatsite/contrib/lab/examples/test_export.py::test_every_line_hashes_back_to_its_request[0]",
    "chatsite/contrib/lab/examples/test_export.py::test_what_can_not_be_rebuilt",
    "chatsite/contrib/endpoint/mcp_server/test_sent_requests.py",
    "chatsite/contrib/endpoint/mcp_server/test_transcripts.py",
    "chatsite/contrib/endpoint/test_item_references.py::test_items_with_one_id_are_in_doubt",
    "chatsite/contrib/endpoint/test_item_references.py::test_statements_for_items_are_bounded",
    "chatsite/contrib/endpoint/test_owner_history.py",
    "chatsite/review/test_access_log.py",
    "chatsite/review/test_actions.py",
    "chatsite/review/test_charts.py",
    "chatsite/review/test_dashboard.py",
    "chatsite/review/test_history.py",
    "chatsite/review/test_lists.py",
    "chatsite/review/test_purge.py",
    "chatsite/review/test_rights.py::TestUpgrade",
    "chatsite/review/test_summaries.py",
    "chatsite/review/test_timeline.py",
    "chatsite/features/attachments/test_messages.py",
    "chatsite/features/attachments/test_uploads.py",
    # What no row can hold is refused by each database in its own words.
    "chatsite/test_hostile_input.py",
    # What is left in any column.
    "chatsite/test_forgotten.py",
    "chatsite/turns/test_branching.py",
    "chatsite/features/importing/test_export.py",
    "chatsite/features/importing/test_importing.py",
    "test_upgrade.py",
)

# What takes a second or more when nothing else runs, by the beginnings of names. What
# starts servers has the mark `server` and is slow as well.
SLOW = (
    "bench/",
    "browser/",
    "deploy/",
    "faults/",
    "chatsite/accounts/test_leaving.py",
    "chatsite/features/attachments/test_reading.py::TestPdf",
    "chatsite/contrib/endpoint/test_bad_input.py::test_ten_thousand_messages",
    "chatsite/jobs/test_summary_proposals.py",
    "chatsite/contrib/lab/experiments/test_experiments.py",
    "chatsite/live/test_socket_fuzz.py",
    "chatsite/llm/test_fuzzed_streams.py",
    "chatsite/pages/test_long_conversation.py",
    "chatsite/ops/test_verify_backup.py",
    "chatsite/pages/test_looking.py",
    "chatsite/review/test_hostile.py",
    "chatsite/review/test_rights.py",
    "chatsite/test_hostile_input.py",
    "chatsite/contrib/mcp/test_mcp.py",
    "chatsite/features/importing/test_fuzzed_imports.py",
    "chatsite/test_random_actions.py",
    "chatsite/turns/test_small_windows.py",
    "memory/agents/test_langmem.py::test_of_any_history",
    "memory/agents/test_long_turns.py",
    "memory/agents/test_property.py",
    "memory/test_compaction.py",
    "memory/test_mending.py",
    "memory/test_migrations.py",
    "memory/test_property.py",
    "memory/test_replay.py",
    "memory/test_tool_messages.py",
    "test_package.py",
    "test_plugin.py",
    "test_sbom.py::test_bill_is_valid",
    "test_servers.py",
    "test_setup.py",
    "test_unsteady.py",
    "test_upgrade.py",
)


def can_have(path: Path, expression: str) -> bool:
    """Return whether a file can have tests for marks that `and` joins.

    Collecting every file for the few that a run needs takes as long as a hundred tests.
    """
    if not path.is_relative_to(TESTS) or " or " in expression:
        return True
    return all(_can_have(path, name) for name in expression.split(" and "))


@cache
def _can_have(path: Path, mark: str) -> bool:
    name = str(path.relative_to(TESTS))
    if mark == "first":
        others = (*SLOW, *CONTRIB, *WEEKLY)
        return name.startswith(DIALECT) or not name.startswith(others)
    if mark != "postgresql":
        return name.startswith(FOLDERS.get(mark, ""))
    files = tuple(each.partition("::")[0] for each in POSTGRESQL)
    return name.startswith(files) or bool(OWN_MARK.search(path.read_text()))


def mark(item: pytest.Item, database: str) -> None:
    """Give a test its tier, and the marks `postgresql` and `slow` where it has them."""
    if not item.path.is_relative_to(TESTS):
        return
    name = item.nodeid.removeprefix(f"{TESTS.name}/")
    own = item.get_closest_marker("database")
    if name.startswith(POSTGRESQL) or (own and own.args == ("postgresql",)):
        item.add_marker("postgresql")
    if name.startswith(RANDOM):
        item.add_marker("random")
    if name.startswith(SLOW) or item.get_closest_marker("server"):
        item.add_marker("slow")
    item.add_marker(_find_tier(item, name, database))
    for mark in (*FOLDERS, "first", "postgresql"):
        if item.get_closest_marker(mark) and not _can_have(item.path, mark):
            raise pytest.UsageError(f"{name} has the mark {mark!r}, its file can't.")


def _find_tier(item: pytest.Item, name: str, database: str) -> str:
    if name.startswith(WEEKLY):
        return "weekly"
    if name.startswith(SMOKE):
        return "smoke"
    if database == "postgresql" and name.startswith(DIALECT):
        return "rest" if item.get_closest_marker("server") else "first"
    is_first = not name.startswith(CONTRIB) and not item.get_closest_marker("slow")
    if database == "postgresql":
        is_first = is_first and bool(item.get_closest_marker("database"))
    return "first" if is_first else "rest"
