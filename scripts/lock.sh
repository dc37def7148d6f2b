#!/bin/sh
# Writes the locks: the versions, with the hashes of their files, that each file of
# requirements/ brings on any system and any Python from 3.11 on. Arguments go to uv.
# Versions stay while they fit: --upgrade takes the newest ones, --upgrade-package NAME the
# newest of one.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh requirements/tests.lock

write() { # NAME [ARGUMENTS]
    name="$1"
    shift
    .venv/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 \
        --generate-hashes --custom-compile-command "make lock" \
        --output-file "$name.lock" "$name.txt" "$@"
}

# The tests have all that the others have but models, so those take over its versions.
write requirements/tests "$@"
for name in oldest google site signin saml mcp tracing models; do
    cp requirements/tests.lock "requirements/$name.lock"
    write "requirements/$name"
done

# Two packages without what they bring; see scripts/local.sh.
write requirements/local --no-deps "$@"

# The documentation is built in an environment of its own.
write requirements/docs "$@"
