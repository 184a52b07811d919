"""Rows that differ between two recorded runs: their outputs read, compared, and traced to the inputs."""
