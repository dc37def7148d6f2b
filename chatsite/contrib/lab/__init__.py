"""Requests that are compared, varied and sent again beside the stored ones."""
