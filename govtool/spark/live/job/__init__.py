"""The job itself: its script, arguments, software and settings, without what is secret."""
