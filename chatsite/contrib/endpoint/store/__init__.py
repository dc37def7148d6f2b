"""Storage of what clients send.

Bodies are stored in pieces, each once, with the conversation that a request continues.
"""
