"""Versions of Delta and Iceberg tables as leaves of a plan: the Parquet files that a table's log names."""
