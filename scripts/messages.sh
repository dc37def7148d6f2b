#!/bin/sh
# Brings the catalogs of translations up to date with the sources, and compiles them:
# for the languages that are there, or for the one named as argument, such as de.
set -eu
cd "$(dirname "$0")/.."

if ! command -v xgettext > /dev/null || ! command -v msgfmt > /dev/null; then
    echo "GNU gettext is missing. Install it and try again:" >&2
    echo "    apt-get install -y gettext" >&2
    exit 1
fi
scripts/setup.sh
export DEBUG=true
# The strings of an extra go to its own catalog, but only if this folder exists.
for extra in chatsite/contrib/*/__init__.py; do
    mkdir -p "${extra%/*}/locale"
done
which="--all"
[ "$#" -eq 0 ] || which="--locale=$1"
.venv/bin/python manage.py makemessages "$which" --no-obsolete --no-wrap \
    --add-location=file --ignore=tests --ignore=bench --ignore=staticfiles \
    --ignore=var --ignore=build
.venv/bin/python manage.py compilemessages --ignore=.venv --verbosity=0
