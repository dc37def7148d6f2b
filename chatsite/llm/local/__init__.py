"""Servers of models on this machine."""
