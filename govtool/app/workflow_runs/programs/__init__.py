"""Programs as workflows: recorded Spark programs, scripts of SQL and dbt projects, an action a module."""
