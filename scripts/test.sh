#!/bin/sh
# The tests of one tier (tests/streams.py) on two cores: first, with which the smoke tests
# run, rest or weekly. Two processes take what needs no browser and no faults, on SQLite
# and then, where the database matters, on PostgreSQL. Beside them run those that wait for
# servers more than they compute. The tests start their own servers.
# Further arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."
tier="${1:-first}"
[ "$#" = 0 ] || shift

scripts/setup.sh requirements/tests.lock
scripts/programs.sh
.venv/bin/python --version

# The tests start Python more than a hundred times, which should not compile everything
# again where the environment forbids to keep what was compiled.
unset PYTHONDONTWRITEBYTECODE

# Several processes on two cores, on any machine: a test may wait longer than alone.
export TEST_PATIENCE="${TEST_PATIENCE:-4}"

failed=0 running=""
# One run of pytest. If it fails, the next one of its process follows all the same.
run() { # DATABASE MARKS [ARGUMENTS]
  database="$1" marks="$2"
  shift 2
  echo "Tests on $database: $marks"
  TEST_DATABASE="$database" .venv/bin/python -m pytest -q -o timeout=480 -m "$marks" "$@" &
  running=$!
  wait "$running" || failed=1
}

# Whole files, in the order in which they are collected: the slow ones first.
run_on_two() { run "$@" -n 2 --dist loadfile --no-loadscope-reorder; }

first() {
  run_on_two sqlite "first" "$@"
  run_on_two postgresql "first and postgresql" "$@"
}

smoke() {
  run sqlite "smoke" "$@"
}

rest() {
  run_on_two sqlite "rest and not browser and not fault" "$@"
  run_on_two postgresql "rest and postgresql and not fault" "$@"
}

faults() {
  run sqlite "rest and fault" "$@"
  run postgresql "rest and postgresql and fault" "$@"
}

browser() {
  run sqlite "rest and browser and not fault" "$@"
}

weekly() {
  run_on_two sqlite "weekly" "$@"
  run_on_two postgresql "weekly and postgresql" "$@"
  # What the other tiers take only some rounds of (tests/rounds.py).
  export TEST_ROUNDS=all
  run_on_two sqlite "random" "$@"
  run_on_two postgresql "random and postgresql" "$@"
}

case "$tier" in
  first) beside="smoke" ;;
  rest) beside="faults browser" ;;
  weekly) beside="" ;;
  *) echo "No tier $tier: it is first, rest or weekly." >&2; exit 2 ;;
esac

logs="$(mktemp -d)" started=""
# What fails is noted here and run again when nothing else runs (tests/unsteady.py).
export TEST_FAILURES="$logs/failures"
mkdir "$TEST_FAILURES"
trap 'kill $started 2> /dev/null || true; rm -rf "$logs"' EXIT

start() { # TIER, smoke, faults or browser [ARGUMENTS]
  (
    trap 'kill $running 2> /dev/null; exit 1' TERM
    "$@"
    exit "$failed"
  ) &
  started="$started $!"
}

# Those of the tier itself are seen at once, the others' lines when all have ended.
for name in $beside; do
  start "$name" "$@" > "$logs/$name" 2>&1
done
start "$tier" "$@"
for process in $started; do
  wait "$process" || failed=1
done
started=""
for name in $beside; do
  cat "$logs/$name"
done
.venv/bin/python -m tests.unsteady "$TEST_FAILURES" || failed=1
exit "$failed"
