"""What staff may do to a conversation besides looking: rebuild, restore, mark reviewed,
take a copy, erase. Nothing here changes what was said.
"""
