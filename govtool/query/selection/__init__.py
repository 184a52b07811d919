"""From what a user types to columns and datasets: names, patterns, selectors, software."""
