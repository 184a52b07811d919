"""Oracles for the extractor: databases that say for certain what a query puts out and what it depends on.

``cluster`` runs a private PostgreSQL, ``trees`` reads the parse trees of its views, ``views`` reads lineage out of
them, ``compare`` sets it beside the extractor's; ``queries`` generates queries, and ``perturb`` asks DuckDB whether
changing a column changes what it must not change.
"""
