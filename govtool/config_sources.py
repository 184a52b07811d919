"""``[[sources]]`` of govtool.toml: what one ``govtool ingest`` brings up to date.

[[sources]]
kind = "sql"                        # sql, dbt, log, catalog, openlineage, prov or spark
path = "warehouse"                  # or a list; relative to this file; "-" is no path here
dialect = "postgres"                # the options of `govtool ingest sql`, with _ for -

[[sources]]
kind = "catalog"
url = "postgresql://reader@dw:5432/shop"
name = "dw"                         # by default the kind and the path, or the name of the database
min_coverage = 95
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from govtool.redaction import clean_location

TEXT, TEXTS, FLAG, NUMBER, TABLE, PATHS = "a string", "texts", "true or false", "a number", "a table", "paths"
"""Types of options; ``PATHS`` are relative to the file, ``TEXTS`` are not."""

_SQL = {"dialect": TEXT, "schema": PATHS, "default_catalog": TEXT, "default_schema": TEXT, "namespace": TEXT}

KINDS: Mapping[str, Mapping[str, str]] = {
    "sql": {
        **_SQL,
        "catalog": TEXT,
        "explain": FLAG,
        "relation_from": TEXT,
        "var": TABLE,
        "drop_unreadable": FLAG,
        "follow_links": FLAG,
        "workers": NUMBER,
    },
    "dbt": {"dialect": TEXT, "namespace": TEXT, "keep_literals": FLAG},
    "log": {
        **_SQL,
        "from": TEXT,
        "map": TABLE,
        "keep_literals": FLAG,
        "engine": TEXT,
        "workers": NUMBER,
        "master": TEXT,
        "max_errors": NUMBER,
    },
    "catalog": {
        "sql": PATHS,
        "only": TEXTS,
        "explain": FLAG,
        "dialect": TEXT,
        "namespace": TEXT,
        "keep_literals": FLAG,
    },
    "openlineage": {"dialect": TEXT},
    "prov": {},
    "spark": {"default_schema": TEXT, "namespace": TEXT},
}
"""Options of a source by its kind, and their types: those of the command of that kind."""

SHARED: Mapping[str, str] = {"name": TEXT, "strict": FLAG, "min_coverage": NUMBER}
"""Options of every source."""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One entry of ``[[sources]]``; paths are absolute."""

    kind: str
    paths: tuple[str, ...]
    """Files and folders; of a catalog, its address."""
    name: str | None = None
    """The source's name; None: that by default."""
    written: tuple[str, ...] = ()
    """The paths as they are in the file."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Options as the command of this kind has them, with ``_`` for ``-``."""

    @property
    def label(self) -> str:
        """The name, or the kind and the places as they are written, without secrets."""
        return self.name or f"{self.kind}:{'+'.join(clean_location(path) for path in self.written or self.paths)}"

    @property
    def shown_options(self) -> dict[str, object]:
        """The options without secrets of addresses."""
        return {
            name: clean_location(value) if isinstance(value, str) else value for name, value in self.options.items()
        }
