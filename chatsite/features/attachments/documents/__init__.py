"""The text of office documents, books, e-mails and long web pages.

A separate program with limits reads them.
"""
