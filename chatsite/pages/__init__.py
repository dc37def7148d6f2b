"""The split page and the list: views, forms, presenters, template tags, Markdown.

Presenters read the tables and give templates plain values. Start at urls.py.
"""
