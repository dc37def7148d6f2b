#!/bin/sh
# Every benchmark under bench/, each with its default size. What other projects bring
# to the comparisons lives in environments of its own.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh requirements/tests.lock

environment() { # FOLDER REQUIREMENTS
    wanted="$(cksum < "$2")"
    [ "$(cat "$1/installed" 2>/dev/null)" != "$wanted" ] || return 0
    .venv/bin/python -m venv "$1"
    # An old pip needs many minutes to resolve the ranges.
    "$1/bin/python" -m pip install --quiet --upgrade pip
    "$1/bin/python" -m pip install --quiet --requirement "$2"
    echo "$wanted" > "$1/installed"
}
environment .venv-bench bench/requirements.txt
environment .venv-chainlit bench/streaming/requirements.txt

# As modules: a script's own folder would come first, and bench/memory hide memory.
for bench in $(grep -l __main__ bench/*.py); do
    echo "== $bench"
    DEBUG=true ENV_FILE= .venv/bin/python -m "bench.$(basename "$bench" .py)"
done
echo "== bench/streaming"
for mode in "" --burst --knee "--turns 10 --words 60 --messages 100"; do
    DEBUG=true ENV_FILE= .venv/bin/python -m bench.streaming $mode
done
echo "== bench/neighbours"
ENV_FILE= .venv/bin/python -m bench.neighbours
echo "== bench/rounds"
.venv-bench/bin/python -m bench.rounds
echo "== bench/survival"
.venv-bench/bin/python -m bench.survival
echo "== bench/memory"
.venv-bench/bin/python -m bench.memory
echo "== bench/other_suites"
# The other two are run where checkouts of their libraries are.
.venv/bin/python -m bench.other_suites --only langchain
