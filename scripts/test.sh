#!/bin/sh
# The whole suite on SQLite, then all but the browser tests on PostgreSQL. The tests
# start their own servers. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh tests/requirements.txt
scripts/programs.sh

echo "Tests on SQLite"
TEST_DATABASE=sqlite .venv/bin/python -m pytest -q "$@"
echo "Tests on PostgreSQL"
TEST_DATABASE=postgresql .venv/bin/python -m pytest -q -m "not browser" "$@"
