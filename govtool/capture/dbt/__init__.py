"""dbt's artifacts: the compiled project, what the warehouse has, what was run."""
