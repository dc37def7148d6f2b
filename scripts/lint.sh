#!/bin/sh
# Format, lint rules, Django's system checks, and no model without its migration.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh requirements/tests.lock
export DEBUG=true EXTRAS=all
.venv/bin/ruff format --check .
.venv/bin/ruff check .
.venv/bin/python manage.py check --fail-level WARNING
.venv/bin/python manage.py makemigrations --check --dry-run
