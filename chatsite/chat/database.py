"""What the site knows of a database that is away; memory/database.py says the rest."""

from memory.database import AWAY, TROUBLE, insist, is_away, name_of

__all__ = ["AWAY", "TROUBLE", "insist", "is_away", "name_of"]
