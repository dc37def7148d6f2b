"""The values of templates, read from the tables: no request, no HTML."""
