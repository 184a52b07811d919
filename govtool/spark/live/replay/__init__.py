"""A replay by the user's script: it runs in a process of its own, under govtool's own interpreter."""
