"""Tools that search the web and read its pages, within limits.

They do not reach the operator's own network.
"""
