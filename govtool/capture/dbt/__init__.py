"""dbt's artifacts: the compiled project, the warehouse's catalog, the results of runs."""
