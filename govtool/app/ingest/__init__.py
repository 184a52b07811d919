"""Evidence into the graph: one file a kind of input, the key and payload of each, and its commit (``payload``)."""
