"""Writing of one summary: its material, prompts and checks."""
