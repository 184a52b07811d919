"""Versions of the graph: branches, commits and their indexes, opened."""
