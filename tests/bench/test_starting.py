"""Smoke tests of benches that are run by hand and take minutes.

They run without Django's settings, which each process of a bench has for itself.
"""

import os
import subprocess
import sys

from tests.servers import ROOT

MODULES = ("bench.outages", "bench.upgrades", "tests.faults.soak")


def test_benches_are_imported_without_a_site():
    env = {key: value for key, value in os.environ.items() if "DJANGO" not in key}
    code = f"import {', '.join(MODULES)}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.stderr == ""
