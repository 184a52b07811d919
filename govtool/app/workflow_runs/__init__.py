"""Workflows, run: module boundaries on disk, state from execution to execution, and what the store keeps of a run."""
