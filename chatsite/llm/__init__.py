"""Language models behind one interface: providers, streaming, errors, the demo model.

The package knows no conversation and no table. Start at providers.py.
"""
