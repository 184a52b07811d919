"""Builds an index on Spark: the arrays of the local build, to the byte, from fragments that no one machine holds."""
