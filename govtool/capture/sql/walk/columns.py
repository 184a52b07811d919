"""Column resolution: which base columns a written column name stands for."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp
from sqlglot.expressions import Identifier

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.dependencies import (
    KIND_MASK,
    OPAQUE,
    REF_SHIFT,
    TRANSFORMATION,
    Deps,
    bounded,
    compose,
)
from govtool.capture.sql.walk.relation import QueryOutput, Source
from govtool.capture.sql.walk.scope import Scope
from govtool.capture.sql.walk.state import position
from govtool.capture.sql.walk.variables import VariableWalk
from govtool.model import ROWS, EdgeKind

PSEUDO_COLUMNS: Final = frozenset(
    [
        "rowid",
        "_rowid_",
        "ctid",
        "xmin",
        "xmax",
        "oid",
        "tableoid",
        "_partitiontime",
        "_partitiondate",
        "_table_suffix",
        "_file_name",
        "_metadata",
        "rownum",
        "level",
        "sysdate",
        "systimestamp",
        "user",
        "uid",
        "current_user",
        "session_user",
        "connect_by_isleaf",
        "connect_by_iscycle",
        "current_date",
        "current_timestamp",
        "localtimestamp",
        "current_time",
        "input_file_name",
    ]
)
"""Names that a dialect defines itself; unqualified and unknown to every source, they depend on nothing."""

SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "rowid", "rownum"})
"""Those of them that say where a row is, and nothing of what is in it."""

GRAPH_COLUMNS: Final = frozenset({"$node_id", "$edge_id", "$from_id", "$to_id"})
"""Columns that T-SQL's tables of nodes and of edges have without listing them ("Graph processing")."""


_ROWS_UNNAMED: Final = frozenset({"oracle", "mysql", "tsql", "fabric", "snowflake", "spark", "databricks", "hive"})
"""Dialects in which the name of a FROM item stands for no value."""

_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]+")
"""An address of electronic mail."""


class ColumnWalk(VariableWalk):
    """Resolves names in scopes. See ``docs/architecture.md``, "How a name is resolved"."""

    def column(self, node: exp.Column, scope: Scope) -> Deps:
        """Return the dependencies that a column reference stands for.

        The result may carry star bits of inner queries; the caller composes, which clears them.
        """
        args = node.args
        this = args["this"]
        if type(this) is not Identifier or this.args.get("quoted"):
            if self._is_address(this, args.get("table")):
                return ()
            return self.noted(self._column(node, this, args.get("table"), scope))
        table = args.get("table")
        text = this.args["this"]
        # What was written before in this scope needs no resolving; most columns are named more than once.
        if table is None:
            found = scope.seen.get(text)
            if found is not None:
                return found
            name = self._plain.get(text) or self.name(this)
            if name not in scope.merged:  # the common case: one source of this scope is known to have it
                owner = None
                for source in scope.sources:
                    if name in source.known and not source.hidden:
                        if owner is not None:
                            break
                        owner = source
                else:
                    if owner is not None and scope.aliases_first is None:
                        known = owner.get(name, self.interner) or ()
                        scope.seen[text] = known
                        self.named.update(known)
                        return known
            return self.noted(self.unqualified(name, node, scope, text))
        key = (table.args["this"], text)
        found = scope.seen.get(key)
        if found is None:
            found = self.noted(self._column(node, this, table, scope))
            if found and not args.get("db") and not table.args.get("quoted"):
                scope.seen[key] = found
        return found

    def _is_address(self, this: exp.Expr, table: exp.Expr | None) -> bool:
        """Return whether a quoted name is somebody's address: a literal of MySQL or BigQuery that came without dialect.

        Names of columns are stored, and literals of people are not.
        """
        if table is not None or self.dialect or type(this) is not Identifier:
            return False
        return _ADDRESS.fullmatch(this.args["this"]) is not None

    def noted(self, deps: Deps) -> Deps:
        """Return the dependencies of a name, having recorded that the statement has it.

        A statement fails without the column even where nothing of it is handed on, so that no edge shows it. What is
        resolved by name passes through here: columns in ``column``, and the few lists of bare names (USING, EXCEPT …).
        """
        self.named.update(deps)
        return deps

    def relabelled(self, output: QueryOutput, columns: list[str]) -> QueryOutput:
        """Return an output under a list of column names, which wants the columns that it had: recorded as named."""
        for deps in output.deps[: len(columns)]:
            self.named.update(deps)
        return output.renamed(columns) if columns else output

    def note_name(self, source: Source, name: str) -> None:
        """Record that a list of bare names has a column of a FROM item."""
        self.named.update(source.get(name, self.interner) or source.assume(name, self.interner) or ())

    def _column(self, node: exp.Column, this: exp.Expr, table: exp.Expr | None, scope: Scope) -> Deps:
        if table is None:
            if type(this) is not Identifier:
                return self._unnamed(node, this, None, scope)
            return self.unqualified(self.name(this), node, scope)
        if type(this) is Identifier and not node.args.get("db"):
            source = scope.by_alias.get(self.name(table))
            if source is not None:
                name = self.name(this)
                if source.table is not None and name in source.known:
                    return source.table.deps(name, self.interner)
                return self.of_source(source, name, node)
        return self._qualified(node, scope)

    def of_source(self, source: Source, name: str, node: exp.Expr) -> Deps:
        """Return the dependencies of column ``name`` of a FROM item that was named."""
        found = source.get(name, self.interner)
        if found is not None:
            return found
        found = source.assume(name, self.interner)
        if found is not None:
            for owner in source.owners():
                if len(source.owners()) == 1:
                    owner.used.add(name)
            return found
        if source.table is not None:
            bare = name.strip('"').lower()
            if bare in SYSTEM_COLUMNS:
                return ()
            if bare in GRAPH_COLUMNS:
                return source.table.deps(name, self.interner)
            if bare not in PSEUDO_COLUMNS and not bare.startswith(("metadata$", "_metadata")):
                self.diagnose(
                    "unresolved",
                    f"{source.table.id} has no column {name} in the known schema",
                    node,
                    target=f"{source.table.id}.{name}",
                )
            return source.table.deps(name, self.interner)
        owners = source.owners()
        if len(owners) > 1:
            return self._ambiguous(name, [dep for owner in owners for dep in owner.deps(name, self.interner)], node)
        if name == source.alias and source.output is not None:
            return bounded(dep for deps in source.output.deps for dep in deps)
        self.diagnose("unresolved", f"{source.alias or 'the subquery'} has no column {name}", node)
        return ()

    def unqualified(self, name: str, node: exp.Expr, scope: Scope, text: str = "") -> Deps:
        """Return the dependencies of an unqualified column name, looking outwards through the scopes.

        Where the scope itself owns the name, it is remembered under the written ``text``.
        """
        if (
            name == "default" and self.dialect in ("tsql", "fabric") and not node.this.args.get("quoted")
        ):  # f(1, DEFAULT)
            return ()
        level: Scope | None = scope
        while level is not None:
            found = self._in_scope(name, node, level)
            if found is not None:
                if level is scope and text and scope.aliases_first is None:
                    scope.seen[text] = found
                return found
            level = level.parent
        bare = name.strip('"').lower()
        if bare in GRAPH_COLUMNS:
            tables = [s.table for s in scope.sources if s.table is not None]
            if len(tables) > 1:  # the one of them that is of its kind
                tables = [t for t in tables if (bare == "$node_id") != ('"$from_id"' in t.columns)]
            return tables[0].deps(name, self.interner) if len(tables) == 1 else ()
        if self.variables and (value := self.variable(name, node)) is not None:
            return value
        if bare in PSEUDO_COLUMNS or name in self.parameters or name.startswith(('"@', '"$', '"#')):
            return ()
        source = scope.find((name,))
        if source is not None:
            return self.whole_row(source, node)
        if name in scope.aliases:  # not by the rules of the dialect, but nothing else can be meant
            return scope.aliases[name]
        self.diagnose("unresolved", f"no source in scope has a column {name}", node)
        return tuple(
            self.interner.ref(s.table.id, ROWS) | OPAQUE for s in scope.sources if s.table is not None and not s.hidden
        )

    def _in_scope(self, name: str, node: exp.Expr, scope: Scope) -> Deps | None:
        merged = scope.merged.get(name)
        if merged is not None:
            return merged
        owners = [source for source in scope.sources if name in source.known and not source.hidden]
        if scope.aliases_first is not None and name in scope.aliases and name not in scope.aliases_first:
            return scope.aliases[name]
        if len(owners) == 1:
            return owners[0].get(name, self.interner)
        if owners:
            if self.dialect == "bigquery" and scope.by_alias.get(name) in owners:  # range variables hide columns
                return scope.by_alias[name].get(name, self.interner)
            deps = [dep for source in owners for dep in source.get(name, self.interner) or ()]
            return self._ambiguous(name, deps, node)
        open_sources = [source for source in scope.sources if source.is_open and not source.hidden]
        alias = scope.aliases.get(name)
        if alias is not None and (self.lateral_aliases or scope.aliases_visible) and name not in scope.correlated:
            return alias
        if not open_sources:
            open_sources = [source for source in scope.sources if source.is_virtual]
        if not open_sources:
            return None
        row = scope.by_alias.get(name) if self._names_rows(node) else None
        if row is not None and not any(s.is_used(name) or s.describes(name) for s in open_sources):
            return self.whole_row(row, node)
        return self._from_open(name, node, scope, open_sources)

    def _names_rows(self, node: exp.Expr) -> bool:
        """True if the name of a FROM item may stand for its row: in Oracle's ``VALUE(t)`` and ``REF(t)`` only."""
        if self.dialect not in _ROWS_UNNAMED:
            return True
        return isinstance(node.parent, nodes.Anonymous) and node.parent.name.upper() in ("VALUE", "REF")

    def _from_open(self, name: str, node: exp.Expr, scope: Scope, open_sources: list[Source]) -> Deps | None:
        """Resolve a name that no source is known to have, among sources whose columns are not all known."""
        interner = self.interner
        shown = [source for source in open_sources if source.is_used(name)]
        if len(shown) == 1:
            return shown[0].assume(name, interner)
        possible = [(source, deps) for source in open_sources if (deps := source.assume(name, interner)) is not None]
        if name in self.parameters:
            return self.variable(name, node) or ()
        argument = self._argument(name, scope)
        if argument is not None:
            return argument
        bare = name.strip('"').lower()
        if bare in PSEUDO_COLUMNS:
            return ()
        if len(possible) == 1:
            source, deps = possible[0]
            outer = self._outer_owner(name, scope.around)
            if outer is not None:
                return self._ambiguous(name, [*deps, *outer], node)
            owners = source.owners()
            if len(owners) == 1 and scope.around is None:
                owners[0].used.add(name)
            return deps
        if not possible:
            several = [
                dep for source in open_sources for owner in source.owners() for dep in owner.deps(name, interner)
            ]
            return self._ambiguous(name, several, node) if several else None
        described = self._described(name, possible) if not shown else None
        if described is not None and self._outer_owner(name, scope.around) is None:
            self.presumed = True
            return described
        return self._ambiguous(name, [dep for _, deps in possible for dep in deps], node)

    def _described(self, name: str, possible: list[tuple[Source, Deps]]) -> Deps | None:
        """Return the dependencies of a name that the documentation of one source lists, where all are documented."""
        found: Deps | None = None
        for source, deps in possible:
            lists = source.describes(name)
            if lists is None or (lists and found is not None):
                return None
            if lists:
                found = deps
        return found

    def _argument(self, name: str, scope: Scope | None) -> Deps | None:
        """Return the dependencies of an argument of the function that is being inlined."""
        while scope is not None and self.inlining:
            for source in scope.sources:
                if source.is_arguments and name in source.known:
                    return source.get(name, self.interner)
            scope = scope.parent
        return None

    def _outer_owner(self, name: str, scope: Scope | None) -> Deps | None:
        while scope is not None:
            for source in scope.sources:
                found = source.get(name, self.interner)
                if found is not None:
                    return found
            scope = scope.parent
        return None

    def _ambiguous(self, name: str, candidates: list[int], node: exp.Expr) -> Deps:
        deps = tuple(dict.fromkeys((dep >> REF_SHIFT << REF_SHIFT) | OPAQUE for dep in candidates))
        if len(deps) < 2:  # whichever source owns the name, it comes from the same base column
            return tuple(dict.fromkeys(compose(dep, TRANSFORMATION, 0, self.interner) for dep in candidates))
        line, column = position(node)
        self.ambiguous.setdefault(frozenset(dep >> REF_SHIFT for dep in deps), (name, line or 1, column or 1))
        return deps

    def _qualified(self, node: exp.Column, scope: Scope) -> Deps:
        """Resolve a name of several parts: ``alias.column``, ``schema.table.column``, or fields below a column."""
        parts = node.parts
        last = parts[-1]
        if type(last) is nodes.Star:
            return self._unnamed(node, last, self.qualifier(parts[:-1]), scope)
        names = self.qualifier(parts)
        if type(last) is not nodes.Identifier:
            return self._unnamed(node, last, names[:-1], scope)
        if names[-1] in ("nextval", "currval") and scope.find(names[:-1]) is None:  # of a sequence
            return ()
        # The longest qualifier that names a source wins: a.b.c as (catalog.)schema.table, then as alias, then as
        # column.
        for cut in range(len(names) - 1, 0, -1):
            source = scope.find(names[:cut])
            if source is not None:
                built = self._built(source, names[cut], names[cut + 1 :])
                if built is not None:
                    return built
                deps = self.of_source(source, names[cut], node)
                return self._fields(deps, names[cut + 1 :])
        if self.variables and (value := self._record(names, node, scope)) is not None:
            return value
        if self.dialect == "oracle" and names[0].startswith(("dbms_", "utl_")):  # constants of supplied packages
            return ()
        level: Scope | None = scope
        while level is not None:
            for source in level.sources:
                built = self._built(source, names[0], names[1:])
                if built is not None:
                    return built
            found = self._in_scope(names[0], node, level)
            if found is not None:
                return self._fields(found, names[1:])
            level = level.parent
        bare = names[0].strip('"').lower()
        if bare in ("new", "old", "excluded", "inserted", "deleted", "source", "target") or names[0] in self.parameters:
            return ()
        self.diagnose("unresolved", f"no source in scope is named {'.'.join(names[:-1])}", node)
        return ()

    def _record(self, names: tuple[str, ...], node: exp.Expr, scope: Scope) -> Deps | None:
        """Return the dependencies of a field of a record, unless a column of the name is known."""
        level: Scope | None = scope
        while level is not None:
            if any([names[0] in source.known for source in level.sources]):  # noqa: C419
                return None
            level = level.parent
        return self.variable_field(names[0], names[1:], node)

    def _built(self, source: Source, column: str, path: tuple[str, ...]) -> Deps | None:
        """Return the dependencies of ``column.field…`` where a subquery built the column as a struct, else None."""
        shape = source.output
        if shape is None or not path or not shape.fields:
            return None
        steps = (column, *path)
        for i, step in enumerate(steps):
            position = shape.index().get(step)
            if position is None:
                return None
            inner = shape.fields.get(position)
            if inner is None or i == len(steps) - 1:
                return self._fields(shape.deps[position], steps[i + 1 :])
            shape = inner
        return None

    def _fields(self, deps: Deps, path: tuple[str, ...]) -> Deps:
        if not path:
            return deps
        text = ".".join(path)
        field = self.interner.field
        return tuple(dict.fromkeys(dep if dep & KIND_MASK == OPAQUE else field(dep, text) for dep in deps))

    def _unnamed(self, node: exp.Expr, this: exp.Expr, qualifier: tuple[str, ...] | None, scope: Scope) -> Deps:
        """Resolve ``t.*`` inside an expression and positional columns (``$1``, ``t.$1``) of staged files."""
        if type(this) is nodes.Star:
            source = scope.find(qualifier) if qualifier else None
            if source is not None:
                if any(this.args.values()):  # t.* EXCEPT (a)
                    base = self.source_star(source)
                    return self.passing(self.starred_columns(this, scope, None, base), node)
                return self.whole_row(source, node)
            return bounded(dep for item in scope.sources for dep in self.whole_row(item, node))
        if isinstance(this, (nodes.Parameter, nodes.Placeholder)):
            return self.positional(this, qualifier, scope)
        text = this.name if hasattr(this, "name") else ""
        return self.unqualified(self.name(text), node, scope) if text else ()


ROW_KINDS: Final = {
    "join": int(EdgeKind.JOIN),
    "filter": int(EdgeKind.FILTER),
    "group": int(EdgeKind.GROUP_BY),
    "sort": int(EdgeKind.SORT),
    "distinct": int(EdgeKind.DISTINCT),
    "set": int(EdgeKind.SET_OPERATION),
    "union_all": int(EdgeKind.UNION_ALL),
}
