#!/bin/sh
# The tests of the memory and of its wheel on the oldest LangChain and pydantic that the
# ranges allow, in an environment of its own. Arguments go to pytest. What depends on the
# database alone is left out: migrations, ranges of rows and leases.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh requirements/tests.lock
VENV=.venv-oldest
[ -x "$VENV/bin/python" ] || .venv/bin/python -m venv "$VENV"
# By uv: pip, asked for hashes, takes the newest pydantic where a package wants an extra.
.venv/bin/uv pip install --quiet --no-config --python "$VENV/bin/python" \
    --require-hashes --requirement requirements/oldest.lock
"$VENV/bin/python" -c 'import langchain, langchain_core
print("langchain", langchain.__version__, "langchain-core", langchain_core.__version__)'

# Their total is that of the versions that are installed (tests/totals.py).
unset PYTHONDONTWRITEBYTECODE TEST_TOTALS
export TEST_DATABASE=sqlite TEST_PATIENCE="${TEST_PATIENCE:-4}"

# What fails is noted and run again, when nothing else runs (tests/unsteady.py).
TEST_FAILURES="$(mktemp -d)"
export TEST_FAILURES
trap 'rm -rf "$TEST_FAILURES"' EXIT
failed=0
"$VENV/bin/python" -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder \
    -m "not weekly" tests/memory tests/test_package.py \
    --ignore tests/memory/test_migrations.py --ignore tests/memory/test_ranges.py \
    --ignore tests/memory/test_leases.py "$@" || failed=1
"$VENV/bin/python" -m tests.unsteady "$TEST_FAILURES" || failed=1
exit "$failed"
