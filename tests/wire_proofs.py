"""Every request that a test has recorded, compared with what a fake provider received:
the hash of its body, and the parts of its tokens.
"""

import hashlib

from memory.models import ModelCall
from memory.view import rebuilding


def find_unproved(received):
    """Return what is wrong with the recorded requests; `received`: bodies, as bytes."""
    digests = {hashlib.sha256(body).hexdigest() for body in received}
    rows = ModelCall.objects.filter(purpose__in=ModelCall.COMPOSED)
    rows = rebuilding.select_known(rows.exclude(provider=""))
    wrong = []
    for call in rows.select_related("conversation", "message"):
        built, sent = rebuilding.rebuild_context(call), rebuilding.find_body_hash(call)
        # One that failed may have been refused before it left.
        if sent and sent not in digests and not call.error:
            wrong.append(f"{call.pk}: no body with its hash was received")
        if not sent and call.first_token_ms is not None:
            wrong.append(f"{call.pk}: the hash of its body was not recorded")
        if rebuilding.is_erased(call):
            continue
        if not rebuilding.is_sent(call, built):
            wrong.append(f"{call.pk}: it is not rebuilt as it was received")
        if sum(tokens for _, tokens in built.parts) != call.tokens_estimated:
            wrong.append(f"{call.pk}: its parts are not the whole")
    return wrong
