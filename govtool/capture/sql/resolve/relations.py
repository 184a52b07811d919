"""Resolution of relation names at their place: defaults, search paths, temporary tables, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.scripts.session import PATH_MARK
from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.relation import file_name, named_table
from govtool.names import fold, join_name, split_name
from govtool.redaction import clean_location

DEFAULT_SCHEMAS: Final = {"tsql": "dbo", "fabric": "dbo", "snowflake": "public"}
"""The schema of names with a catalog and an empty schema: ``db..t``."""

USUAL_SCHEMAS: Final = {
    **dict.fromkeys(("tsql", "fabric"), "dbo"),
    **dict.fromkeys(("postgres", "redshift", "snowflake"), "public"),
    "duckdb": "main",
}
"""The schema that a name without one mostly means: that of sessions which have set none."""

FILE_FORMATS: Final = frozenset({"parquet", "delta", "csv", "json", "orc", "avro", "text", "iceberg", "binaryfile"})

_plain_parts: Final[dict[str, dict[str, str]]] = {}
"""Folded unquoted parts of names by dialect, shared by all batches of the process."""


_SESSION_SCHEMAS: Final = frozenset({"pg_temp", "session", "_session"})


class Relations:
    """The relations that are known by name."""

    def __init__(self, schema: Mapping[str, Mapping[str, str | None]]) -> None:
        self.schema = schema
        self._definers: dict[str, list[StatementState]] = {}
        self._by_table: dict[str, list[str]] | None = None
        """Names of tables by their last part, once that was needed."""
        self._known_names: frozenset[str] = frozenset()
        self._names: dict[tuple[object, ...], dict[object, str]] = {}
        """Resolved table names, by all that decides about them."""

    def _temporary(self, name: str, script: ScriptState) -> str:
        if name.startswith('"#'):  # T-SQL and Redshift: the mark is not part of the name
            name = name.strip('"').lstrip("#")
        return join_name(["temp", session_part(script.session), f'"{name}"' if name.startswith("@") else name])

    def table_name(self, node: exp.Table, statement: StatementState) -> str:
        """Return the canonical id of a written table name at a statement; empty if it is not a plain name."""
        args = node.args
        this = args.get("this")
        names = statement.names
        if names is None:
            names = statement.names = self._names.setdefault(statement.naming, {})
        # The common case, a name of one or two parts without quotes, has a key of strings.
        if type(this) is nodes.Identifier and args.get("catalog") is None:
            if this.args.get("global_"):
                return _shared(name_part(this, statement.script.dialect))
            written = _unquoted(this, args.get("db"))
            if written:
                plain = names.get(written)
                if plain is None:
                    plain = names[written] = self._plain_name(written, statement)
                return plain
        if not isinstance(this, nodes.Identifier):
            special = self._unnamed(this, statement)
            if special is not None:
                return special
        script = statement.script
        parts = _parts(node, script.dialect)
        if not parts:
            return ""
        if args.get("path"):
            return self._on_path(args["path"].split(PATH_MARK), name_part(parts[-1], script.dialect), statement)
        if parts[-1].args.get("global_"):
            return _shared(name_part(parts[-1], script.dialect))
        quoted = tuple([(part.args["this"], bool(part.args.get("quoted"))) for part in parts])
        temporary = bool(this.args.get("temporary")) if isinstance(this, nodes.Identifier) else False
        key = (quoted, script.session if temporary else "")
        found = names.get(key)
        if found is None:
            found = names[key] = self._resolve_name(
                [name_part(p, script.dialect) for p in parts], [part for part, _ in quoted], statement, temporary
            )
        return found

    def _on_path(self, schemas: list[str], name: str, statement: StatementState) -> str:
        """Return the id of a table of a function's own search path: in the first schema that has it, else the first."""
        candidates = [self._qualified([schema, name] if schema else [name], statement) for schema in schemas]
        return next((one for one in candidates if self._knows(one)), candidates[0])

    def _unnamed(self, this: object, statement: StatementState) -> str | None:
        """Return the id of what stands in the place of a name: a variable, a file; None if it is none of these."""
        script = statement.script
        if isinstance(this, nodes.Parameter):
            name = f"@{this.name.lower()}"
            return self._temporary(name, script) if name in script.temporary else ""
        if isinstance(this, nodes.Var):
            return file_name(this.name)
        if isinstance(this, nodes.DynamicIdentifier) and isinstance(this.this, nodes.Literal):  # identifier('s.t')
            named = named_table(this.this.name, script.dialect)
            return self.table_name(named, statement) if named is not None else ""
        return None

    def _plain_name(self, written: tuple[str, ...], statement: StatementState) -> str:
        dialect = statement.script.dialect
        return self._resolve_name([_plain_part(part, dialect) for part in written], written, statement, False)

    def _resolve_name(
        self, names: list[str], written: Sequence[str], statement: StatementState, temporary: bool
    ) -> str:
        session = self._of_session(names, statement, temporary)
        if session:
            return session
        if "://" in names[0]:  # select * from 's3://bucket/x.parquet', which BigQuery's parser splits at its dots
            return file_name(".".join(written))
        if len(names) == 2 and written[0].lower() in FILE_FORMATS and "/" in written[1]:
            return file_name(written[1])
        address = next((n for n, name in enumerate(names) if "://" in name), 0)
        if address:
            names = [*names[:address], clean_location(".".join(names[address:]))]
        if len(names) == 1:
            for schema in statement.path:
                candidate = self._qualified([schema, names[0]], statement)
                if candidate in self.schema or candidate in self._definers or candidate in self._known_names:
                    return candidate
            default = statement.schema or (statement.path[0] if statement.path else None)
            if default is not None:
                names = [*split_name(default), names[0]]
        return self._qualified(names, statement)

    def _of_session(self, names: list[str], statement: StatementState, temporary: bool) -> str:
        """Return the id of a temporary table; empty if the name is of no such table."""
        last, script = names[-1], statement.script
        if len(names) == 1 or (len(names) == 3 and names[0] == "tempdb"):
            known = temporary or (last in script.temporary and last not in statement.later)
            return self._temporary(last, script) if known else ""
        if len(names) == 2 and names[0] in _SESSION_SCHEMAS and last in script.temporary:
            return self._temporary(last, script)
        return ""

    def _qualified(self, names: list[str], statement: StatementState) -> str:
        if len(names) == 2 and statement.catalog:
            names = [statement.catalog, *names]
        return join_name(names)

    def other_name(self, name: str, dialect: str) -> str:
        """Return the name that the batch also knows and that may mean the same table; empty if there is none.

        ``s`` and ``dbo.s`` are one table in most sessions of SQL Server: which schema a name without one means is not
        in the text.
        """
        usual = USUAL_SCHEMAS.get(dialect)
        if usual is None:
            return ""
        if name.startswith(f"{usual}."):
            other = name[len(usual) + 1 :]
        elif "." not in name:
            other = f"{usual}.{name}"
        else:
            return ""
        return other if self._knows(other) else ""

    def of_any_schema(self, name: str, left_open: frozenset[str]) -> list[str]:
        """Return the known tables that are called as one is, in schemas that no template leaves open; sorted."""
        if self._by_table is None:
            self._by_table = {}
            for known in sorted({*self._definers, *self.schema, *self._known_names}):
                self._by_table.setdefault(split_name(known)[-1], []).append(known)
        found = self._by_table.get(split_name(name)[-1], ())
        return [one for one in found if one != name and left_open.isdisjoint(split_name(one)[:-1])]

    def _knows(self, name: str) -> bool:
        return name in self._definers or name in self.schema or name in self._known_names

    def _renamed(self, old: exp.Expr, new: exp.Table, statement: StatementState) -> str:
        if isinstance(old, nodes.Table) and old.args.get("db") and not new.args.get("db"):
            new = new.copy()
            new.set("db", old.args["db"].copy())
            if old.args.get("catalog"):
                new.set("catalog", old.args["catalog"].copy())
        return self.table_name(new, statement)

    def _target(self, node: exp.Expr, statement: StatementState) -> str:
        if isinstance(node, nodes.Schema):
            node = node.this
        return self.table_name(node, statement) if isinstance(node, nodes.Table) else ""


def _unquoted(this: exp.Identifier, db: object) -> tuple[str, ...]:
    """Return the parts of a plain name of one or two parts; none if one of them is quoted or it is temporary."""
    inner = this.args
    if inner.get("quoted") or inner.get("temporary"):
        return ()
    if db is None:
        return (inner["this"],)
    if type(db) is nodes.Identifier:
        outer = db.args
        if not outer.get("quoted"):
            return outer["this"], inner["this"]
    return ()


def _parts(node: exp.Table, dialect: str) -> list[exp.Expr]:
    """Return the identifiers of a table's name; none if it has other parts."""
    this = node.args.get("this")
    catalog = node.args.get("catalog")
    parts: list[exp.Expr]
    if not isinstance(this, nodes.Identifier) or node.args.get("db"):
        parts = node.parts
    elif isinstance(catalog, nodes.Identifier):  # db..t
        schema = DEFAULT_SCHEMAS.get(dialect)
        parts = [catalog, nodes.Identifier(this=schema), this] if schema else [catalog, this]
    else:
        parts = [this]
    return parts if all([isinstance(part, nodes.Identifier) for part in parts]) else []  # noqa: C419


def _shared(name: str) -> str:
    """Return the id of T-SQL's ``##name``, a temporary table that all sessions see ("CREATE TABLE")."""
    bare = name.strip('"')
    return join_name(["tempdb", "dbo", f'"##{bare}"'])


def name_part(identifier: exp.Expr, dialect: str) -> str:
    """Return the canonical text of one part of a relation's name."""
    text = identifier.args.get("this")
    if identifier.args.get("quoted") or not isinstance(text, str):
        return fold(identifier.name, quoted=bool(identifier.args.get("quoted")), dialect=dialect, table=True)
    return _plain_part(text, dialect)


def _plain_part(text: str, dialect: str) -> str:
    plain = _plain_parts.get(dialect)
    if plain is None:
        plain = _plain_parts[dialect] = {}
    folded = plain.get(text)
    if folded is None:
        folded = plain[text] = fold(text, dialect=dialect, table=True)
    return folded


def column_name(node: exp.Expr, dialect: str) -> str:
    """Return the canonical name of a column by its definition or its mention."""
    identifier = node.this if isinstance(node, (nodes.Column, nodes.ColumnDef)) else node
    return fold(identifier.name, quoted=bool(identifier.args.get("quoted")), dialect=dialect)


def session_part(session: str) -> str:
    """Return the part of the names of temporary tables that tells their session."""
    return fold(session, quoted=True) if session else "session"
