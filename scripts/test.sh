#!/bin/sh
# The whole suite in three runs side by side, which wait for servers more than they
# compute: all but the browser on SQLite, what knows a database on PostgreSQL, and the
# browser. The tests start their own servers. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh tests/requirements.txt
scripts/programs.sh

logs="$(mktemp -d)"
running=""
trap 'kill $running 2> /dev/null || true; rm -rf "$logs"' EXIT

start() {
  name="$1" database="$2"
  shift 2
  TEST_DATABASE="$database" .venv/bin/python -m pytest -q "$@" > "$logs/$name" 2>&1 &
  running="$running $!"
}

start PostgreSQL postgresql -m "not browser" \
  --ignore=tests/memory/engine --ignore=tests/chatsite/llm --ignore=tests/bench \
  --ignore=tests/test_house.py --ignore=tests/test_plugin.py \
  --ignore=tests/test_readme.py --ignore=tests/deploy/test_files.py \
  --ignore=tests/test_catalogs.py \
  --ignore=tests/chatsite/chat/test_rendering.py "$@"
start browser sqlite -m browser "$@"

echo "Tests on SQLite"
failed=0
TEST_DATABASE=sqlite .venv/bin/python -m pytest -q -m "not browser" "$@" || failed=1
for run in $running; do
  wait "$run" || failed=1
done
for name in PostgreSQL browser; do
  echo "Tests on $name"
  cat "$logs/$name"
done
exit "$failed"
