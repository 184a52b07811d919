"""The Python interface. ``import govtool`` re-exports it; each module here is thin: keywords in, an answer out."""
