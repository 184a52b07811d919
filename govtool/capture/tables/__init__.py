"""Reading what the logs of Delta and Iceberg tables name as their data files."""
