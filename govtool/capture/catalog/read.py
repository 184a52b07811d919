"""Reads the catalog that an address names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from govtool.capture.catalog.address import Address, parse_address
from govtool.capture.catalog.model import Catalog
from govtool.names import split_name, unquote


def read_catalog(url: str | Address, only: Sequence[str] = ()) -> Catalog:
    """Read a catalog.

    Args:
        url: See ``address``.
        only: Patterns of schemas, such as ``mart_*``; none: all.

    Raises:
        UsageError: it is no address.
        SourceError: a driver is missing, or the database cannot be reached or read.
    """
    address = parse_address(url) if isinstance(url, str) else url
    catalog = _read(address)
    if not only:
        return catalog
    kept = tuple(item for item in catalog.relations if _schema_matches(item.name, only))
    functions = tuple(item for item in catalog.functions if _schema_matches(item.name, only))
    return replace(catalog, relations=kept, functions=functions)


def _read(address: Address) -> Catalog:
    if address.kind == "postgres":
        from govtool.capture.catalog.postgres import read_postgres

        return read_postgres(address)
    if address.kind == "duckdb":
        from govtool.capture.catalog.duckdb import read_duckdb

        return read_duckdb(address)
    if address.kind == "sqlite":
        from govtool.capture.catalog.sqlite import read_sqlite

        return read_sqlite(address)
    if address.kind == "spark":
        from govtool.capture.catalog.spark import read_spark

        return read_spark(address)
    from govtool.capture.catalog.alchemy import read_alchemy

    return read_alchemy(address)


def _schema_matches(name: str, patterns: Sequence[str]) -> bool:
    parts = [unquote(part) for part in split_name(name)]
    return len(parts) > 1 and any(fnmatchcase(parts[-2], pattern) for pattern in patterns)
