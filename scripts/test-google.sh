#!/bin/sh
# The tests of the models of LangChain, Google's among them, in an environment of its own:
# Google's package wants an older tenacity than the site's lock has. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

VENV=.venv-google scripts/setup.sh requirements/google.lock
unset PYTHONDONTWRITEBYTECODE TEST_TOTALS
export TEST_DATABASE=sqlite TEST_PATIENCE="${TEST_PATIENCE:-4}"
# Google's client leaves a coroutine of a closed answer behind, which is no fault of a test.
.venv-google/bin/python -m pytest -q -W ignore::pytest.PytestUnraisableExceptionWarning \
    tests/chatsite/llm/test_langchain_chat.py "$@"
