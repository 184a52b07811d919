"""Provenance graphs of workflows: read from files, kept in the store, opened and questioned by name."""
