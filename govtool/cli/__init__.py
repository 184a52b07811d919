"""The command line: one file a command. Parse, call ``govtool.api`` or ``govtool.app``, render, exit."""
