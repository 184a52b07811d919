"""Queries: FROM items and their joins, clauses, projections, set operations."""
