"""Upkeep of a store, removal of text from all of its versions, and a look whether all is in order."""
