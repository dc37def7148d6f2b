"""Spans of OpenTelemetry for requests to models and calls of tools.

They have a reference to what was stored in the place of any text.
"""
