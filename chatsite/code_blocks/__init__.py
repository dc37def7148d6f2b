"""Pieces of code in replies, as a leaf app: long ones are folded, and drawings and web
pages can be shown as pictures.
"""
