"""Clauses that a parser does not read, by dialect: left out, or rewritten."""
