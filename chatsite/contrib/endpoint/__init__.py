"""The endpoint for other clients: it speaks the wires that clients speak
already, keeps what they send, and shows it here."""
