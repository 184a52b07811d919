"""Templates to SQL: Jinja and dbt, rendered in a sandbox with permissive defaults; other parameters blanked out."""
