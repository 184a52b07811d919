"""Rebuilt plans, run: leaves are views over exactly the recorded files."""
