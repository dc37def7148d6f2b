"""What keys open besides the wires, for whom a gateway's key speaks, and what becomes
of requests while the store is away."""
