"""The files that the site has signed, day by day: a root to publish, and the proofs.

A Merkle tree as in RFC 6962; its leaves are the SHA-256 of the files in the order of
their hashes. Nothing is recorded unless EVIDENCE_ROOT_FILE names a file.
"""

import hashlib
from collections.abc import Hashable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from chatsite.ops.pace import Pace

from .models import SignedFile

# Files of one reader that are recorded in a day, in each process.
MOST_A_DAY = 200
KEPT_DAYS = 400
# A day is complete so long after its end; by then its last rows are committed.
MARGIN = timedelta(hours=1)
pace = Pace(seconds=86_400.0)


def record_file(data: bytes, reader: Hashable) -> None:
    """Record the hash of a signed file, if the site publishes roots."""
    if not settings.EVIDENCE_ROOT_FILE or pace.count_request(reader, MOST_A_DAY):
        return
    sha256 = hashlib.sha256(data).hexdigest()
    SignedFile.objects.get_or_create(
        sha256=sha256, defaults={"day": timezone.now().date()}
    )


def publish_roots() -> list[str]:
    """Append the root of each complete day to the file; return the new lines.

    Rows that are too old are deleted, a whole day at once.
    """
    oldest = timezone.now().date() - timedelta(days=KEPT_DAYS)
    SignedFile.objects.filter(day__lt=oldest).delete()
    file = Path(settings.EVIDENCE_ROOT_FILE)
    known = file.read_text().splitlines() if file.exists() else []
    published = {line.partition(" ")[0] for line in known}
    rows = SignedFile.objects.filter(day__lte=find_last_day())
    days = rows.order_by("day").values_list("day", flat=True).distinct()
    lines = [describe_day(day) for day in days if str(day) not in published]
    with file.open("a") as written:
        written.writelines(f"{line}\n" for line in lines)
    return lines


def describe_day(day: date) -> str:
    """Return the line of a day: its date, its root and its number of files."""
    leaves = _list_leaves(day)
    return f"{day} {_hash_levels(leaves)[-1][0].hex()} {len(leaves)}"


def prove_inclusion(sha256: str) -> dict[str, Any] | None:
    """Return the proof of a file; None if it is unknown, or its day is not complete."""
    row = SignedFile.objects.filter(sha256=sha256, day__lte=find_last_day()).first()
    if row is None:
        return None
    leaves = _list_leaves(row.day)
    levels, place, path = _hash_levels(leaves), leaves.index(bytes.fromhex(sha256)), []
    for level in levels[:-1]:
        # The last node of an odd level has no sibling: it is in the next one as it is.
        if (sibling := place ^ 1) < len(level):
            path.append(("right" if place < sibling else "left", level[sibling].hex()))
        place //= 2
    root = levels[-1][0].hex()
    return {"day": str(row.day), "sha256": sha256, "root": root, "path": path}


def find_last_day() -> date:
    return (timezone.now() - MARGIN).date() - timedelta(days=1)


def _list_leaves(day: date) -> list[bytes]:
    rows = SignedFile.objects.filter(day=day).order_by("sha256")
    return [*map(bytes.fromhex, rows.values_list("sha256", flat=True))]


def _hash_levels(leaves: list[bytes]) -> list[list[bytes]]:
    """Return the levels of the tree, from its leaves to its root."""
    levels = [[hashlib.sha256(b"\0" + leaf).digest() for leaf in leaves]]
    while len(level := levels[-1]) > 1:
        pairs = (level[n : n + 2] for n in range(0, len(level), 2))
        levels.append(
            [
                hashlib.sha256(b"\1" + b"".join(pair)).digest()
                if len(pair) == 2
                else pair[0]
                for pair in pairs
            ]
        )
    return levels
