"""The files that the site has signed, day by day: a root to publish, and the proofs.

A Merkle tree as in RFC 6962; its leaves are the SHA-256 of the files in the order of
their hashes. Nothing is recorded unless EVIDENCE_ROOT_FILE names a file.
"""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Hashable
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from chatsite.ops.pace import Pace

from .models import SignedFile

# Files of one reader that are recorded in a day, in each process.
MOST_A_DAY = 200
KEPT_DAYS = 400
# A line has the day, its root and the number of its files.
PARTS = 3
# A day is complete so long after its end; by then its last rows are committed.
MARGIN = timedelta(hours=1)
SIGNED_AT = re.compile(rb'"signed_at":"([0-9-]{10})T')
pace = Pace(seconds=86_400.0)


def record_file(data: bytes, reader: Hashable) -> None:
    """Record the hash of a signed file with its day, if the site publishes roots."""
    if not settings.EVIDENCE_ROOT_FILE or pace.count_request(reader, MOST_A_DAY):
        return
    sha256 = hashlib.sha256(data).hexdigest()
    # The last part of a file is its signature.
    signed_at = SIGNED_AT.findall(data)[-1].decode()
    SignedFile.objects.get_or_create(sha256=sha256, defaults={"day": signed_at})


def append_roots() -> list[str]:
    """Append the root of each complete day to the file; return the new lines.

    Rows that are too old are deleted, a whole day at once.
    """
    file = Path(settings.EVIDENCE_ROOT_FILE)
    known = file.read_text().splitlines() if file.exists() else []
    # A disk that was full may have cut off the last line.
    written = {line.split()[0] for line in known if len(line.split()) == PARTS}
    rows = SignedFile.objects.filter(day__lte=find_last_day())
    days = rows.order_by("day").values_list("day", flat=True).distinct()
    lines = [describe_day(day) for day in days if str(day) not in written]
    with file.open("a") as opened:
        opened.writelines(f"{line}\n" for line in lines)
    oldest = timezone.now().date() - timedelta(days=KEPT_DAYS)
    SignedFile.objects.filter(day__lt=oldest).delete()
    return lines


def describe_day(day: date) -> str:
    """Return the line of a day: its date, its root and its number of files."""
    leaves, levels = _read_day(day)
    return f"{day} {levels[-1][0].hex()} {len(leaves)}"


def prove_inclusion(sha256: str) -> dict[str, Any] | None:
    """Return the proof of a file; None if it is unknown, or its day is not complete."""
    row = SignedFile.objects.filter(sha256=sha256, day__lte=find_last_day()).first()
    if row is None:
        return None
    leaves, levels = _read_day(row.day)
    place, path = bisect_left(leaves, bytes.fromhex(sha256)), []
    for level in levels[:-1]:
        # The last node of an odd level has no sibling: it is in the next one as it is.
        if (sibling := place ^ 1) < len(level):
            path.append(("right" if place < sibling else "left", level[sibling].hex()))
        place //= 2
    root = levels[-1][0].hex()
    return {"day": str(row.day), "sha256": sha256, "root": root, "path": path}


def find_last_day() -> date:
    return (timezone.now() - MARGIN).date() - timedelta(days=1)


@lru_cache(maxsize=4)
def _read_day(day: date) -> tuple[list[bytes], list[list[bytes]]]:
    """Return the leaves and the levels of a complete day, which does not change."""
    rows = SignedFile.objects.filter(day=day).order_by("sha256")
    leaves = [*map(bytes.fromhex, rows.values_list("sha256", flat=True))]
    return leaves, _hash_levels(leaves)


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
