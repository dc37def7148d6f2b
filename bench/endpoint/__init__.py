"""Benchmarks of the endpoint for other clients."""
