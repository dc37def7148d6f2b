#!/bin/sh
# Every benchmark under bench/, each with its default size.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh tests/requirements.txt
for bench in bench/*.py; do
    echo "== $bench"
    DEBUG=true PYTHONPATH=. .venv/bin/python "$bench"
done
