"""The index of a commit as the one before and a change."""
