"""Deletion over annotated queries: what a deletion makes of each row, by propagation and by replay.

Source: the specification of fine-grained provenance, section 4.
"""
