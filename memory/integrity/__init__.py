"""Proof that rows are unchanged: signatures and the audit."""
