"""Pieces of code in replies: long ones are folded, and drawings and web
pages can be shown as pictures.
"""
