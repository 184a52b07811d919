"""From derivations to the arrays of an index."""
