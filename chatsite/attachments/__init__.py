"""Files that people attach: read as text, and kept until a message takes them. Knows no
turn and no page."""
