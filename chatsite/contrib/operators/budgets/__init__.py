"""What people and groups may use in a month, in tokens or dollars, and what they have
used by model.
"""
