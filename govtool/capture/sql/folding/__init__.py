"""From walked statements to derivations: the net effect of a script, its edges, the whole extraction."""
