"""Annotations specialised: a circuit evaluated in a semiring, block by block.

Source: Green, Karvounarakis and Tannen, "Provenance Semirings", PODS 2007, and the specification of fine-grained
provenance, section 2.
"""
