"""Proof that what is stored is what was written: signatures and the audit."""
