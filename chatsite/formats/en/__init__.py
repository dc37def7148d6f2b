"""English formats. The names are those that Django looks for."""
