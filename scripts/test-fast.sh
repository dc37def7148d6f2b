#!/bin/sh
# What one runs while working: the tests that start no programs and take no seconds, on
# SQLite, on two cores. The others are in scripts/test.sh. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh requirements/tests.lock
python="${VENV:-.venv}/bin/python"
"$python" --version

unset PYTHONDONTWRITEBYTECODE
export TEST_DATABASE=sqlite
exec "$python" -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "not slow and not weekly" "$@"
