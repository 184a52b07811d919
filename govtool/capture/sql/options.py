"""Options of reading a batch of scripts: dialect, defaults, schema, and the names of bare SELECTs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from govtool.capture.sql.schemas.supplied import Schema
from govtool.capture.sql.templates.macros import DbtProject
from govtool.names import DEFAULT_NAMESPACE, fold, fold_name, join_name


@dataclass(frozen=True, slots=True)
class Options:
    """Options of reading a batch of scripts."""

    dialect: str = ""
    default_catalog: str | None = None
    default_schema: str | None = None
    schema: Schema | None = None
    relation_from: str | None = None
    """A path pattern such as ``{schema}/{table}.sql`` that names the relation of a file's bare SELECT."""
    source: str = ""
    namespace: str = DEFAULT_NAMESPACE
    variables: Mapping[str, object] = field(default_factory=dict)
    """Values for templates."""
    projects: tuple[DbtProject, ...] = ()
    """The dbt projects that scripts belong to: their macros, packages, variables and seeds."""
    keep_literals: bool = False
    """True to keep the literals in the text of statements, which are often about people."""
    evidence: bool = True
    """True to make each statement's fingerprint and redacted text; without it ``fingerprint`` is a text digest."""

    def __reduce__(self) -> tuple[object, ...]:
        """Go to other processes by the constructor: a compiled class has no other way."""
        return Options, tuple([getattr(self, item.name) for item in fields(self)])


def defaults(options: Options) -> tuple[str | None, str | None]:
    """Return the default catalog and schema in canonical text, where a user named them."""
    catalog, schema = options.default_catalog, options.default_schema
    return (
        fold_name(catalog, options.dialect) if catalog else None,
        fold_name(schema, options.dialect) if schema else None,
    )


def relation_of(file: str, options: Options) -> str | None:
    """Return the relation that a bare SELECT in ``file`` defines by ``relation_from``; None without one or without a
    match. Without a pattern, models of dbt projects are called as their file, as ``ref`` calls them.

    The pattern's last path parts are matched against the file's: ``{schema}/{table}/query.sql``.
    """
    pattern = options.relation_from
    if not pattern and any(project.is_model(file) for project in options.projects):
        pattern = "{table}.sql"
    if not pattern:
        return None
    expression = "".join(
        f"(?P<{piece[1:-1]}>[^/]+)" if re.fullmatch(r"\{(catalog|schema|table)\}", piece) else re.escape(piece)
        for piece in re.split(r"(\{[a-z]+\})", pattern)
    )
    match = re.search(rf"(?:^|/){expression}$", file)
    if match is None:
        return None
    groups = match.groupdict()
    parts = [
        groups.get("catalog") or options.default_catalog,
        groups.get("schema") or options.default_schema,
        groups.get("table"),
    ]
    known = [part for part in parts[1:] if part] if not parts[1] or not parts[0] else [part for part in parts if part]
    return join_name([fold(part, quoted=False, dialect=options.dialect, table=True) for part in known])
