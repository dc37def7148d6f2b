#!/bin/sh
# A bill of materials (CycloneDX) and the licenses of what the site runs with, or of the
# lock named as argument: in build/.
set -eu
cd "$(dirname "$0")/.."

lock="${1:-requirements/site.lock}"
scripts/setup.sh "$lock"
.venv/bin/python -m scripts.sbom "$lock" build
