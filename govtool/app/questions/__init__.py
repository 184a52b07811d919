"""Questions about the column graph: names and options in, an answer out."""
