"""Memos: what an earlier extraction found, used again where nothing that it looked at has changed."""
