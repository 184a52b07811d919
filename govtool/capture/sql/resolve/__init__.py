"""Statements of a batch resolved against each other: names, definitions, tables, variables, functions."""
