"""The history of runs, and what differs between two of them."""
