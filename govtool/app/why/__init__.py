"""The rows of one query over a folder of relations, with their provenance; no store."""
