"""Incremental ingests: random edits of a warehouse (``edits``), their proof (``oracle``), their cost (``cost``)."""
