"""Diagrams of Mermaid, drawn below their code in a frame without origin and network."""
