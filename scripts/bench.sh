#!/bin/sh
# Every benchmark under bench/, each with its default size. The memories of other
# projects, which bench/memory compares, live in an environment of their own.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh tests/requirements.txt

requirements=bench/requirements.txt
stamp=.venv-bench/installed
wanted="$(cksum < "$requirements")"
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    .venv/bin/python -m venv .venv-bench
    # An old pip needs many minutes to resolve the ranges.
    .venv-bench/bin/python -m pip install --quiet --upgrade pip
    .venv-bench/bin/python -m pip install --quiet --requirement "$requirements"
    echo "$wanted" > "$stamp"
fi

# As modules: a script's own folder would come first, and bench/memory hide memory.
for bench in $(grep -l __main__ bench/*.py); do
    echo "== $bench"
    DEBUG=true ENV_FILE= .venv/bin/python -m "bench.$(basename "$bench" .py)"
done
echo "== bench/memory"
.venv-bench/bin/python -m bench.memory
