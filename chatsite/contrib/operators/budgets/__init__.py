"""Monthly budgets of users and groups, and their use by model.

A budget is in tokens or dollars.
"""
