"""Readers of SQL: scripts to statements, statements to derivations."""
