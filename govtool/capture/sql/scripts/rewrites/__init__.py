"""Statements in another form, which the parser reads."""
