"""The common base of rules and facts.

Both are statements of a user: a part of a message by its place in the text, or the
user's later wording.
"""
