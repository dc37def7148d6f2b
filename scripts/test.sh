#!/bin/sh
# The whole suite on SQLite and, beside it, on PostgreSQL what knows a database and no
# browser: both wait for servers more than they compute. The tests start their own
# servers. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh tests/requirements.txt
scripts/programs.sh

set_apart="--ignore=tests/memory/engine --ignore=tests/chatsite/llm --ignore=tests/bench"
log="$(mktemp)"
# shellcheck disable=SC2086
TEST_DATABASE=postgresql .venv/bin/python -m pytest -q -m "not browser" $set_apart "$@" > "$log" 2>&1 &
postgresql=$!
trap 'kill "$postgresql" 2> /dev/null || true; rm -f "$log"' EXIT

echo "Tests on SQLite"
failed=0
TEST_DATABASE=sqlite .venv/bin/python -m pytest -q "$@" || failed=1

echo "Tests on PostgreSQL"
wait "$postgresql" || failed=1
cat "$log"
exit "$failed"
