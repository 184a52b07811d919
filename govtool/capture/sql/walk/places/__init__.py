"""Where in the text an edge comes from, once the walk is over."""
