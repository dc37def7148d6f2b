"""`manage.py audit` over and over in one process: importing everything takes seconds,
which the tests of faults have not got. Reads commands, one a line, and prints what they
say: `audit`, or `erase` for the conversations in which nothing is open any more, which
otherwise would be audited again after every test that follows.
"""

import io
import sys
from contextlib import suppress

import django
from django.core.management import call_command
from django.db import connections

END = "--- end"


def erase(output):
    from chatsite.turns.models import Turn
    from memory import library
    from memory.models import Conversation

    open_turns = Turn.objects.filter(state__in=Turn.UNFINISHED)
    ended = Conversation.objects.exclude(pk__in=open_turns.values("conversation"))
    for conversation in ended:
        # The site may erase one as well.
        with suppress(Conversation.DoesNotExist):
            library.erase_conversation(conversation)
    output.write("erased\n")


def audit(output):
    call_command("audit", stdout=output, no_color=True)


def main():
    django.setup()
    for line in sys.stdin:
        output = io.StringIO()
        try:
            {"audit": audit, "erase": erase}[line.strip()](output)
        except SystemExit:
            output.write("violated\n")
        except Exception as error:  # noqa: BLE001
            # The test that waits for the answer has to see it.
            output.write(f"failed: {error!r}\n")
        connections.close_all()
        print(f"{output.getvalue()}{END}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
