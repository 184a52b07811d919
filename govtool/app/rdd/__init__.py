"""Stored RDD programs: opened, traced and replayed."""
