"""Costs of a file of evidence: collecting and signing it, and checking it, for
conversations of 200 and of 2,000 messages: with summaries, and all in the window.

Prints milliseconds of processor time (medians of 7), in brackets those that passed, and
the kilobytes of the file.
"""

import gc
import json
from functools import partial

from . import databases, long_conversation

SIZES = (200, 2_000)


def report() -> None:
    from django.contrib.auth import get_user_model

    from chatsite.contrib.evidence import contents, signing_keys, verify
    from memory.models import Conversation

    site = "https://bench.example"
    for size in SIZES:
        owner = get_user_model().objects.create_user(f"evidence-{size}")
        made = long_conversation.make(owner, size)
        for kind in ("summarised", "all in the window"):
            if kind != "summarised":
                made.summaries.update(status="superseded")

            def download(pk: int = made.pk) -> bytes:
                row = Conversation.objects.get(pk=pk)
                return signing_keys.sign_file(contents.collect_file(row, None), site)

            data = download()
            keys = json.dumps(signing_keys.publish_keys(site)).encode()
            is_right, said = verify.verify(data, keys)
            if not is_right:
                raise RuntimeError(said)
            # As the site does once its modules are imported.
            gc.freeze()
            check = partial(verify.verify, data, keys)
            made_in = long_conversation.measure(download)[:2]
            checked_in = long_conversation.measure(check)[:2]
            times = [
                f"{spent:6.0f} ms ({all_:5.0f})"
                for spent, all_ in (made_in, checked_in)
            ]
            print(
                f"{size:5,} messages, {kind:17}", *times, f"{len(data) // 1000:5,} kB"
            )


if __name__ == "__main__":
    databases.run("bench.evidence", report)
