"""Features that every site has, an app each.

Each imports the core and no other app; a site can do without any one of them.
"""
