"""The graph that a report draws, and the traces and workflows in it."""
