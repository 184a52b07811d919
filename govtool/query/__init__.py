"""Questions about the graph: select, impact, path, explain. Data in, data out; no input or output."""
