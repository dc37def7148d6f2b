#!/bin/sh
# The whole suite in three runs side by side, which wait for servers more than they
# compute: all but the browser on SQLite, what knows a database on PostgreSQL, and the
# browser with the faults of PostgreSQL behind it, to take as long as the others. The
# tests start their own servers. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh tests/requirements.txt
scripts/programs.sh

logs="$(mktemp -d)"
running=""
trap 'kill $running 2> /dev/null || true; rm -rf "$logs"' EXIT

start() {
  name="$1"
  shift
  "$@" > "$logs/$name" 2>&1 &
  running="$running $!"
}

# In the place of the (sub)shell, so that its number is the one to end it by.
on() {
  export TEST_DATABASE="$1"
  shift
  exec .venv/bin/python -m pytest -q "$@"
}

browser_then_faults() {
  trap 'kill "$run"; exit 1' TERM
  failed=0
  on sqlite -m browser "$@" & run=$!
  wait "$run" || failed=1
  on postgresql -m fault "$@" & run=$!
  wait "$run" || failed=1
  return "$failed"
}

start PostgreSQL on postgresql -m "not browser and not fault" \
  --ignore=tests/memory/engine --ignore=tests/chatsite/llm --ignore=tests/bench \
  --ignore=tests/test_house.py --ignore=tests/test_plugin.py \
  --ignore=tests/test_readme.py --ignore=tests/deploy/test_files.py \
  --ignore=tests/test_catalogs.py \
  --ignore=tests/chatsite/chat/test_rendering.py "$@"
start "browser, then faults on PostgreSQL" browser_then_faults "$@"

echo "Tests on SQLite"
failed=0
(on sqlite -m "not browser" "$@") || failed=1
for run in $running; do
  wait "$run" || failed=1
done
for name in PostgreSQL "browser, then faults on PostgreSQL"; do
  echo "Tests on $name"
  cat "$logs/$name"
done
exit "$failed"
