"""Import of conversations: this site's own export, ChatGPT's and Claude's.

The process that got a file keeps it until one of the site's few places is free
(worker.py). A process of its own, with limits, reads and checks the file, writes its
conversations and proves them (storing.py). No page shows any of them before all are
there.
"""

from .outcome import KIND, Outcome
from .reading import ImportFileError, ImportItemError
from .worker import JOB, add

__all__ = ["JOB", "KIND", "ImportFileError", "ImportItemError", "Outcome", "add"]
