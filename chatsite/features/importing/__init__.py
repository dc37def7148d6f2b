"""Conversations as files: exports, and the import of this site's own, ChatGPT's and
Claude's.

The process that got a file keeps it until one of the site's few places is free
(worker.py). A process of its own, with limits, reads and checks the file, writes its
conversations and proves them (storing.py). No page shows any of them before all are
there.
"""
