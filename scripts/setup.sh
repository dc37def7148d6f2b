#!/bin/sh
# Makes .venv, or the folder VENV, and installs requirements/site.lock or the lock named as
# argument.
# A stamp remembers what is installed, so that the next call returns at once.
# Writes a .env for this machine where there is none.
set -eu
cd "$(dirname "$0")/.."

lock="${1:-requirements/site.lock}"
venv="${VENV:-.venv}"
python="${PYTHON:-$(command -v python3.11 || command -v python3)}"

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "Python 3.11 or newer is needed, $python is older. Set PYTHON=/path/to/python3." >&2
    exit 1
fi

if [ ! -x "$venv/bin/python" ]; then
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        version="$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
        echo "Python's venv module is missing. Install it and try again:" >&2
        echo "    apt-get install -y python$version-venv" >&2
        exit 1
    fi
    "$python" -m venv "$venv"
fi

# manage.py needs settings that make run would otherwise keep to itself. Where the
# environment has a key, it brings the other settings too.
if [ ! -e .env ] && [ -z "${SECRET_KEY:-}" ]; then
    key="$("$python" -c 'import secrets; print(secrets.token_urlsafe(50))')"
    umask_before="$(umask)"
    umask 077
    {
        echo "# Written by make setup for this machine; .env.example has more settings."
        echo "DEBUG=true"
        echo "SECRET_KEY=$key"
        echo "# Apps that are off unless they are named: other clients, and replies tried again."
        echo "EXTRAS=endpoint,lab"
        # A database that is older than this file was signed with the key for development.
        [ ! -e db.sqlite3 ] || echo "SIGNING_KEY=insecure-key-for-development"
    } > .env
    umask "$umask_before"
fi

stamp="$venv/installed-$(echo "$lock" | tr '/' '-')"
wanted="$(cksum < "$lock")"
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$lock"
echo "$wanted" > "$stamp"
