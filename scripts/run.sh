#!/bin/sh
# The site on this machine: SQLite and the demo model, unless the environment or .env
# say otherwise. HOST and PORT choose the address.
set -eu
cd "$(dirname "$0")/.."

HOST="${HOST:-127.0.0.1}"
PORT="${PORT:-8000}"
DEBUG="${DEBUG:-$(sed -n 's/^[^A-Z#]*DEBUG=//p' .env 2>/dev/null || true)}"
export DEBUG="${DEBUG:-true}"
case "$DEBUG" in [Tt]rue | 1 | yes | on) debug=yes ;; *) debug=no ;; esac

if [ "$HOST" != 127.0.0.1 ] && [ -z "${ALLOWED_HOSTS:-}" ] && [ $debug = yes ]; then
    others="$(hostname -I 2>/dev/null | tr -s ' ' ',')$(hostname)"
    export ALLOWED_HOSTS="localhost,127.0.0.1,$HOST,$others"
fi

echo
echo "    Windowpane: http://$HOST:$PORT/"
if [ $debug = yes ]; then
    echo "    Log in as demo with the password demo, or sign up."
    case "$HOST" in
        127.0.0.1 | ::1 | localhost) echo "    As demo you may look at the admin, too: http://$HOST:$PORT/admin/" ;;
    esac
fi
echo
exec .venv/bin/python scripts/serve.py --prepare -b "$HOST" -p "$PORT"
