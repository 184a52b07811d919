"""Datasets as data: where it lies, what it is identified by, and whether it is what was recorded."""
