"""Walks over the index, in Python for a few edges and in numpy for millions."""
