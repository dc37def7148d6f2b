"""`manage.py audit` over and over in one process: importing everything takes seconds,
which the tests of faults have not got. Reads commands, one a line, and prints what they
say: `audit`, or `erase` for the conversations in which nothing is open any more, which
otherwise would be audited again after every test that follows.
"""

import io
import json
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


def prove(output):
    """Check that each file of evidence verifies, so that it has a place for N of N."""
    from chatsite.contrib.evidence import contents, signing_keys, verify
    from memory.models import Conversation

    site, count = "https://soak.example", 0
    for row in Conversation.objects.all():
        calls = row.model_calls.filter(purpose="reply", message__deleted_at=None)
        replies = calls.exclude(message=None).values_list("message__seq", flat=True)
        for reply in (None, *replies.distinct()):
            data = signing_keys.sign_file(contents.collect_file(row, reply), site)
            keys = json.dumps(signing_keys.publish_keys(site)).encode()
            is_right, said = verify.verify(data, keys)
            if not is_right:
                output.write(f"{row.uuid}, reply {reply}: {said}\n")
            count += 1
    output.write(f"{count} files\n")


COMMANDS = {"audit": audit, "prove": prove, "erase": erase}


def main():
    django.setup()
    for line in sys.stdin:
        output = io.StringIO()
        try:
            COMMANDS[line.strip()](output)
        except SystemExit:
            output.write("violated\n")
        except Exception as error:  # noqa: BLE001
            # The test that waits for the answer has to see it.
            output.write(f"failed: {error!r}\n")
        connections.close_all()
        print(f"{output.getvalue()}{END}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
