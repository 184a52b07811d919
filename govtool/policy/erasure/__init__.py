"""Erasure plans: where the data of a subject is, and what to do with each dataset."""
