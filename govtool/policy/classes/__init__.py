"""Classes along the edges of the graph: what columns hold, what functions leave of it, and the ways it came."""
