#!/bin/sh
# The whole suite on two cores. Two processes take what needs no browser and no faults,
# on SQLite and then, where the database matters (tests/streams.py), on PostgreSQL. Beside
# them a third, which waits for servers more than it computes, takes faults and browser on
# SQLite, then faults on PostgreSQL. The tests start their own servers. Arguments go to
# pytest.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh tests/requirements.txt
scripts/programs.sh

# The tests start Python more than a hundred times, which should not compile everything
# again where the environment forbids to keep what was compiled.
unset PYTHONDONTWRITEBYTECODE

# Three processes on two cores, on any machine: a test may wait longer than alone.
export TEST_PATIENCE="${TEST_PATIENCE:-4}"

# What has these marks on SQLite, then what has those on PostgreSQL. The first run may
# fail, and the second follows all the same.
on_both() {
  sqlite="$1" postgresql="$2" failed=0
  shift 2
  trap 'kill $run 2> /dev/null; exit 1' TERM
  for database in sqlite postgresql; do
    marks="$postgresql"
    [ "$database" = postgresql ] || marks="$sqlite"
    echo "Tests on $database: $marks"
    TEST_DATABASE="$database" .venv/bin/python -m pytest -q -o timeout=480 -m "$marks" "$@" &
    run=$!
    wait "$run" || failed=1
  done
  exit "$failed"
}

log="$(mktemp)"
others="" units=""
trap 'kill $others $units 2> /dev/null || true; rm -f "$log"' EXIT

on_both "fault or browser" "fault" "$@" > "$log" 2>&1 & others=$!
# Whole files, in the order in which they are collected: the slow ones first.
on_both "not browser and not fault" "postgresql and not browser and not fault" \
  -n 2 --dist loadfile --no-loadscope-reorder "$@" & units=$!

failed=0
wait "$units" || failed=1
units=""
wait "$others" || failed=1
others=""
cat "$log"
exit "$failed"
