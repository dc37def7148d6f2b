"""Clients that people have, unchanged, in a scripted conversation with tools."""
