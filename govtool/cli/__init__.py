"""The command line: one file a command. Parse, call ``govtool.app``, hand the result to ``govtool.render``, exit."""
