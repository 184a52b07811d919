"""Catalogs of databases: schemas, types, definitions of views, comments and grants, read over a connection."""
