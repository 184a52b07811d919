"""Data that passes through the driver: collected rows, rows made there, RDDs of DataFrames, checkpoints."""
