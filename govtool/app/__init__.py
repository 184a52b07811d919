"""Joins the parts: readers, store, index and queries. The command line and other programs call these functions."""
