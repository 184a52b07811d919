"""Lineage of SQL without a store: an answer, a stream of them, and a store for as long as a question takes."""
