"""Spans of OpenTelemetry for the requests to models and the calls of tools, with a
reference to what was stored in the place of any text."""
