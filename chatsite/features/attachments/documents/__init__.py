"""Documents of offices, books, letters and long web pages as text, read by a program of
its own with limits.
"""
