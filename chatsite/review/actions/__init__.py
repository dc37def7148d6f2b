"""Actions of staff on a conversation: rebuild, restore, mark reviewed, copy, erase.

Nothing here changes what was said.
"""
