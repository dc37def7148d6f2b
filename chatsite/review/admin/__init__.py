"""The pages of the admin; importing this package registers them."""

from . import calls, conversations, messages, people, records, summaries, turns  # noqa: F401
