"""Control flow and variables: which statements are alternatives, which values hold where."""
