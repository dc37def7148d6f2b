#!/bin/sh
# Writes the locks: the versions, with the hashes of their files, that each requirements.txt
# brings on any system and any Python from 3.11 on. Arguments go to uv. Versions stay while
# they fit: --upgrade takes the newest ones, --upgrade-package NAME the newest of one.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh tests/requirements.lock

write() { # NAME [ARGUMENTS]
    name="$1"
    shift
    .venv/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 \
        --generate-hashes --custom-compile-command "make lock" \
        --output-file "$name.lock" "$name.txt" "$@"
}

# The tests have all that the others have, so those take over its versions.
write tests/requirements "$@"
for name in requirements requirements-signin requirements-saml requirements-mcp requirements-tracing; do
    cp tests/requirements.lock "$name.lock"
    write "$name"
done
