"""What keys open besides the wires, and for whom a gateway's key speaks."""
