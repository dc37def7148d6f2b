#!/bin/sh
# Random faults under load, one round after the other; ROUNDS and SEED choose which.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh requirements/tests.lock
scripts/programs.sh
exec .venv/bin/python -m tests.faults.soak
