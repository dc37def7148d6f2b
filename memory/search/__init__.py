"""Finding messages again: recall for the model, search for people."""
