"""Lineage: which conversation a client's request continues, why, and joining."""
