#!/bin/sh
# The pictures under docs/, taken from a fresh site with the demo conversation.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh requirements/tests.lock
scripts/programs.sh
.venv/bin/python -m scripts.screenshots
.venv/bin/python -m scripts.film
