"""Import of conversations: this site's own export, ChatGPT's and Claude's.

The process that got a file keeps it until one of the site's few places is free
(worker.py). A process of its own, with limits, reads and checks the file, writes its
conversations and proves them (storing.py). No page shows any of them before all are
there.
"""

from .foreign import SITES
from .outcome import KIND, Outcome
from .reading import ImportFileError, ImportItemError
from .worker import JOB, add

__all__ = [
    "JOB",
    "KIND",
    "SITES",
    "ImportFileError",
    "ImportItemError",
    "Outcome",
    "add",
    "site_of",
]


def site_of(source: str | None) -> str:
    """The site that an imported conversation comes from; "" = it is not known."""
    return SITES.get((source or "").partition(":")[0], "")
