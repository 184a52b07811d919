"""Exact plans as SQL: one statement, a flat WITH list with one entry an operator, for Spark and for DuckDB."""
