"""Language models behind one door: providers, streaming, errors, the demo model.

Knows no conversation and no table. Start at providers.py.
"""
