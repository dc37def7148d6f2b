"""The endpoint for other clients, as a leaf app: it speaks the wires that clients speak
already, keeps what they send, and shows it here."""
