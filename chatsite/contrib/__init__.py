"""Apps that are off until the setting EXTRAS names them.

Without it nothing of them is imported, and their tables need not exist.
"""
