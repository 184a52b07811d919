"""Runs of jobs: a job as it runs, and runs that a version of the graph knows."""
