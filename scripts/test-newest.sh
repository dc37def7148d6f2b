#!/bin/sh
# What scripts/test-fast.sh runs, on the newest Python of this machine that the locks have
# wheels for, if that is newer than the one of .venv. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

# pyenv has some that are no commands.
find_newest() {
    for minor in 13 12; do
        for python in "$(command -v "python3.$minor")" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python3; do
            if "$python" -c 'import ensurepip, venv' 2> /dev/null; then
                echo "$python"
                return
            fi
        done
    done
}

PYTHON="$(find_newest)"
if [ -z "$PYTHON" ]; then
    echo "No Python 3.12 or 3.13 on this machine."
    exit 0
fi
export PYTHON VENV=.venv-newest

# What fails is noted and run again, when nothing else runs (tests/unsteady.py).
TEST_FAILURES="$(mktemp -d)"
export TEST_FAILURES
trap 'rm -rf "$TEST_FAILURES"' EXIT
failed=0
scripts/test-fast.sh "$@" || failed=1
"$VENV/bin/python" -m tests.unsteady "$TEST_FAILURES" || failed=1
exit "$failed"
