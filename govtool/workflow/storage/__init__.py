"""Graphs in a store: as Parquet fragments, and as one file of arrays that is mapped into memory."""
