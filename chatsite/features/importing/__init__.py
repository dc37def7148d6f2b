"""Conversations as files: exports, and the import of exports of this and other sites.

The process that got a file holds it until one of the site's few import slots is free
(worker.py). A separate process with limits reads and checks the file, writes its
conversations and proves them (storing.py). No page shows any of them before all are
there.
"""
