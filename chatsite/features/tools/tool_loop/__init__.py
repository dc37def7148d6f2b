"""Turns that call tools: calls of a model, rows and numbers of a turn, and their loop.

Tools, and their results as text, are in chatsite.features.tools.
"""
