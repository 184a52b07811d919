"""Statements: which columns each kind writes, and from what."""
