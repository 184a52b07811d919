"""Graphs as plain arrays: files, compressed sparse rows, walks, ranks, support. Knows nothing of what nodes mean."""
