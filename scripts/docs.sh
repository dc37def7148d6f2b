#!/bin/sh
# Builds the documentation as a site in build/site, with an environment of its own. A link
# that leads nowhere is an error. Nothing is loaded from another site.
set -eu
cd "$(dirname "$0")/.."

VENV=.venv-docs scripts/setup.sh requirements/docs.lock
.venv-docs/bin/python scripts/docs.py
NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --config-file docs/mkdocs.yml
echo "Open build/site/index.html"
