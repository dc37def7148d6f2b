"""Tools that search the web and read its pages, within limits and without a way into
the operator's own network.
"""
