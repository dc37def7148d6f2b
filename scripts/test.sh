#!/bin/sh
# The whole suite in three runs side by side, which wait for servers more than they
# compute: all but the browser on SQLite, what knows a database on PostgreSQL, and the
# browser with the faults of PostgreSQL behind it, to take as long as the others. The
# tests start their own servers. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh tests/requirements.txt
scripts/programs.sh

# The tests start Python more than a hundred times, which should not compile everything
# again where the environment forbids to keep what was compiled.
unset PYTHONDONTWRITEBYTECODE

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

# Without the pure parts, and files whose tests say the same on any database.
postgresql() {
  for path in memory/engine memory/agents chatsite/llm bench fakes test_architecture.py \
    test_plugin.py test_docs.py test_catalogs.py test_servers.py deploy/test_files.py \
    chatsite/live/test_slow_reader.py chatsite/live/test_fragments.py \
    chatsite/ops/test_staticfiles.py chatsite/ops/test_proxies.py \
    chatsite/pages/test_markdown.py chatsite/pages/test_maths.py \
    chatsite/pages/test_incremental.py chatsite/pages/test_diff.py \
    chatsite/accounts/test_appearance.py chatsite/accounts/test_languages.py \
    chatsite/review/test_chart_drawing.py chatsite/review/test_hostile.py \
    chatsite/review/test_rights.py; do
    set -- "--ignore=tests/$path" "$@"
  done
  on postgresql -m "not browser and not fault" "$@"
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

start PostgreSQL postgresql "$@"
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
