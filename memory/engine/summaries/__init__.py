"""Writing one summary: what is read, what is asked, what is checked."""
