"""Datasets as data: their places, their identity, and whether they still are what was recorded."""
