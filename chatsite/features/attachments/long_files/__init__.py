"""Files among them that are too long for a message: kept and searched in passages."""
