#!/bin/sh
# Format, lint rules, Django's system checks, no model without its migration, and
# the subjects of the last commits (CONTRIBUTING.md, Commits).
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh requirements/tests.lock
export DEBUG=true EXTRAS=all
.venv/bin/ruff format --check .
.venv/bin/ruff check .
.venv/bin/python manage.py check --fail-level WARNING
.venv/bin/python manage.py makemigrations --check --dry-run

verbs='Add|Fix|Remove|Rename|Move|Speed up|Document|Test|Refactor|Bump'
git log -20 --no-merges --format=%s 2>/dev/null | while IFS= read -r subject; do
  if ! printf '%s' "$subject" | grep -qE "^($verbs) .+" || [ ${#subject} -gt 72 ]; then
    echo "A commit's subject begins with $verbs and has at most 72 characters: $subject"
    exit 1
  fi
done
