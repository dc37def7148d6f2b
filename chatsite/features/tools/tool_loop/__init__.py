"""Turns that call tools: what a model asks for, the rows and numbers of a turn, and the
loop of requests and calls. Tools, and their results as text, are in
chatsite.features.tools.
"""
