"""OpenLineage: events read, merged, turned into derivations, and written again (openlineage.io, spec 2-0-2)."""
