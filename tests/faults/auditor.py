"""`manage.py audit` over and over in one process: importing everything takes seconds,
which the tests of faults have not got. Prints the audit's lines after each line read.
"""

import io
import sys

import django
from django.core.management import call_command
from django.db import connections

END = "--- end"


def main():
    django.setup()
    for _ in sys.stdin:
        output = io.StringIO()
        try:
            call_command("audit", stdout=output, no_color=True)
        except SystemExit:
            output.write("violated\n")
        except Exception as error:  # noqa: BLE001
            # The test that waits for the answer has to see it.
            output.write(f"failed: {error!r}\n")
        connections.close_all()
        print(f"{output.getvalue()}{END}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
