"""The project: its settings, sources and store, its place in a repository, and who runs govtool."""
