"""Expressions: the columns, whole rows and fields in them, and what a function does with them."""
