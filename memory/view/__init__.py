"""What of a transcript the model sees: which messages belong together, and where each
of them is.
"""
