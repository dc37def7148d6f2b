"""Proof that rows are as they were written: signatures and the audit."""
