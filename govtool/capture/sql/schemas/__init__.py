"""Schemas that users supply: which columns datasets have."""
