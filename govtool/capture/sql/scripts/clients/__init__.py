"""Scripts of client programs: their commands, substitutions and templates."""
