"""Answers: what a question about the graph returns, as frozen data. No I/O, no layout."""
