"""Rules that a person states for a whole conversation: how they are found, and which
earlier ones a later one replaces."""
