"""Rows of recorded runs: what is stored of a write, and a write opened to be traced."""
