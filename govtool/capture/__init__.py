"""Readers of evidence: SQL, logs, plans, lineage events. Each turns what it reads into the model."""
