"""The wires that clients speak, each in a module of its own: its errors, what a request
asks for, and how a reply is read. Nothing here knows the database."""
