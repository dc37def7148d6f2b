"""Run a program that reads an untrusted file, within limits that it can't lift.

Usage: limited.py SECONDS BYTES PROGRAM [ARGUMENTS]. processes.py starts it.
"""

import os
import resource
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    seconds, memory, *sys.argv = sys.argv[1:]
    os.nice(10)
    for limit, most in (
        (resource.RLIMIT_AS, int(memory)),
        (resource.RLIMIT_CPU, int(seconds)),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    # The folder of the site's modules without Django.
    sys.path.insert(0, str(Path(__file__).parents[3]))
    runpy.run_path(sys.argv[0], run_name="__main__")
