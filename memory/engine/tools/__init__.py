"""Calls of tools and their results in what a model is sent: in order, and shorter."""
