"""Costs of streaming a reply and the delay of its words, here and elsewhere."""
