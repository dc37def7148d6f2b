"""Attached files on pages: uploads, downloads, and their cards in the transcript."""
