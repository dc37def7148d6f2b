"""What keys open besides the wires."""
