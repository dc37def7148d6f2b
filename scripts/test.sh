#!/bin/sh
# The whole suite on two cores. Two processes take what needs no browser and no faults,
# on SQLite and then, where the database matters (tests/streams.py), on PostgreSQL. Beside
# them two more, which wait for servers more than they compute, take faults and browser on
# SQLite, and faults on PostgreSQL. The tests start their own servers. Arguments go to
# pytest.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh tests/requirements.txt
scripts/programs.sh

# The tests start Python more than a hundred times, which should not compile everything
# again where the environment forbids to keep what was compiled.
unset PYTHONDONTWRITEBYTECODE

logs="$(mktemp -d)"
run="" browser="" faults=""
trap 'kill $run $browser $faults 2> /dev/null || true; rm -rf "$logs"' EXIT

# In the place of the (sub)shell, so that its number is the one to end it by.
on() {
  export TEST_DATABASE="$1"
  shift
  exec .venv/bin/python -m pytest -q "$@"
}

# A run may fail and the next one follows all the same.
failed=0
step() {
  on "$@" & run=$!
  wait "$run" || failed=1
  run=""
}

# Whole files, in the order in which they are collected: the slow ones first.
shared="-n 2 --dist loadfile --no-loadscope-reorder"

on sqlite -m "fault or browser" "$@" > "$logs/browser" 2>&1 & browser=$!
on postgresql -m fault "$@" > "$logs/faults" 2>&1 & faults=$!

# shellcheck disable=SC2086
{
  echo "Tests on SQLite"
  step sqlite $shared -m "not browser and not fault" "$@"
  echo "Tests on PostgreSQL"
  step postgresql $shared -m "postgresql and not browser and not fault" "$@"
}
wait "$browser" || failed=1
browser=""
echo "Faults and browser on SQLite"
cat "$logs/browser"
wait "$faults" || failed=1
faults=""
echo "Faults on PostgreSQL"
cat "$logs/faults"
exit "$failed"
