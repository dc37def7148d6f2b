"""Conversations that come and go: imports, exports, branches.

Start at importing/__init__.py, export.py or copies.py.
"""
