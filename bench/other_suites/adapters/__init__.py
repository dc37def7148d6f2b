"""Modules that the tests of a library import in place of the one that they test."""
