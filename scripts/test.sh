#!/bin/sh
# The whole suite on two cores. Two processes take what needs no browser and no faults,
# on SQLite and then, where the database matters (tests/streams.py), on PostgreSQL. Beside
# them two that wait for servers more than they compute: one takes the faults on SQLite and
# then on PostgreSQL, the other the browser on SQLite. The tests start their own servers.
# Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh requirements/tests.lock
scripts/programs.sh
.venv/bin/python --version

# The tests start Python more than a hundred times, which should not compile everything
# again where the environment forbids to keep what was compiled.
unset PYTHONDONTWRITEBYTECODE

# Four processes on two cores, on any machine: a test may wait longer than alone.
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

units() {
  # Whole files, in the order in which they are collected: the slow ones first.
  set -- -n 2 --dist loadfile --no-loadscope-reorder "$@"
  run sqlite "not browser and not fault" "$@"
  run postgresql "postgresql and not browser and not fault" "$@"
}

faults() {
  run sqlite "fault" "$@"
  run postgresql "fault" "$@"
}

browser() {
  run sqlite "browser and not fault" "$@"
}

logs="$(mktemp -d)" started=""
# What fails is noted here and run again when nothing else runs (tests/unsteady.py).
export TEST_FAILURES="$logs/failures"
mkdir "$TEST_FAILURES"
trap 'kill $started 2> /dev/null || true; rm -rf "$logs"' EXIT

start() { # units, faults or browser [ARGUMENTS]
  (
    trap 'kill $running 2> /dev/null; exit 1' TERM
    "$@"
    exit "$failed"
  ) &
  started="$started $!"
}

# Those of units are seen at once, the others' lines when all have ended.
start faults "$@" > "$logs/faults" 2>&1
start browser "$@" > "$logs/browser" 2>&1
start units "$@"
for process in $started; do
  wait "$process" || failed=1
done
started=""
cat "$logs/faults" "$logs/browser"
.venv/bin/python -m tests.unsteady "$TEST_FAILURES" || failed=1
exit "$failed"
