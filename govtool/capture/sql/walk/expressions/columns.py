"""Column resolution: which base columns a written column name stands for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import KIND_MASK, OPAQUE, TRANSFORMATION, Deps, bounded, compose
from govtool.capture.sql.walk.dispatch import by_class
from govtool.capture.sql.walk.expressions.pseudo_columns import GRAPH_COLUMNS, PSEUDO_COLUMNS, SYSTEM_COLUMNS, own_names
from govtool.capture.sql.walk.expressions.rows import positional, whole_row
from govtool.capture.sql.walk.expressions.variables import variable_deps, variable_field
from govtool.capture.sql.walk.relation import Source
from govtool.capture.sql.walk.scope import Scope
from govtool.model import ROWS

_ROWS_UNNAMED: Final = frozenset({"oracle", "mysql", "tsql", "fabric", "snowflake", "spark", "databricks", "hive"})
"""Dialects in which the name of a FROM item stands for no value."""

_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]+")
"""An address of electronic mail."""

Unnamed = Callable[[Walk, exp.Expr, Any, tuple[str, ...] | None, Scope], Deps]
"""Resolves a column, given what it has in place of a name, and its qualifier."""

UNNAMED: Final[dict[type, Unnamed]] = {}
"""How columns are resolved that have a ``*`` in place of a name; ``statements`` fills it: REPLACE holds expressions."""


def resolve_column(walk: Walk, node: exp.Column, scope: Scope) -> Deps:
    """Return the dependencies that a column reference stands for.

    The result may carry star bits of inner queries; the caller composes, which clears them.
    """
    args = node.args
    this = args["this"]
    written = this.args if type(this) is nodes.Identifier else None
    if written is None or written.get("quoted"):
        if _is_address(walk, this, args.get("table")):
            return ()
        return walk.noted(_resolved(walk, node, this, args.get("table"), scope))
    table = args.get("table")
    text = written["this"]
    # What was written before in this scope needs no resolving; most columns are named more than once.
    if table is None:
        found = scope.seen.get(text)
        if found is not None:
            return found
        name = walk.plain_names.get(text) or walk.name(this)
        if name not in scope.merged:  # the common case: one source of this scope is known to have it
            owner = _only_owner(name, scope)
            if owner is not None and scope.aliases_first is None:
                known = owner.get(name, walk.interner) or ()
                scope.seen[text] = known
                walk.named.update(known)
                return known
        return walk.noted(unqualified(walk, name, node, scope, text))
    key = (table.args["this"], text)
    found = scope.seen.get(key)
    if found is None:
        found = walk.noted(_resolved(walk, node, this, table, scope))
        if found and not args.get("db") and not table.args.get("quoted"):
            scope.seen[key] = found
    return found


def _only_owner(name: str, scope: Scope) -> Source | None:
    """Return the one source of a scope that is known to have a column; None if none or several are."""
    owner = None
    for source in scope.sources:
        if name in source.known and not source.hidden:
            if owner is not None:
                return None
            owner = source
    return owner


def _is_address(walk: Walk, this: exp.Expr, table: exp.Expr | None) -> bool:
    """Return whether a quoted name is somebody's address: a literal of MySQL or BigQuery that came without dialect.

    Names of columns are stored, and literals of people are not.
    """
    if table is not None or walk.dialect or type(this) is not nodes.Identifier:
        return False
    return _ADDRESS.fullmatch(this.args["this"]) is not None


def _resolved(walk: Walk, node: exp.Column, this: exp.Expr, table: exp.Expr | None, scope: Scope) -> Deps:
    if table is None:
        if type(this) is not nodes.Identifier:
            return _unnamed(walk, node, this, None, scope)
        return unqualified(walk, walk.name(this), node, scope)
    if type(this) is nodes.Identifier and not node.args.get("db"):
        source = scope.by_alias.get(walk.name(table))
        if source is not None:
            name = walk.name(this)
            if source.table is not None and name in source.known:
                return source.table.deps(name, walk.interner)
            return of_source(walk, source, name, node)
    return _qualified(walk, node, scope)


def of_source(walk: Walk, source: Source, name: str, node: exp.Expr) -> Deps:
    """Return the dependencies of column ``name`` of a FROM item that was named."""
    found = source.get(name, walk.interner)
    if found is not None:
        return found
    found = source.assume(name, walk.interner)
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
            return source.table.deps(name, walk.interner)
        if walk.dialect == "postgres" and walk.lookup.function(name) is not None:  # t.f is f(t)
            row = whole_row(walk, source, node)
            return tuple([compose(dep, TRANSFORMATION, 0, walk.interner) for dep in row])
        if bare not in PSEUDO_COLUMNS and not bare.startswith(("metadata$", "_metadata")):
            walk.diagnose(
                "unresolved",
                f"{source.table.id} has no column {name} in the known schema",
                node,
                target=f"{source.table.id}.{name}",
            )
        return source.table.deps(name, walk.interner)
    owners = source.owners()
    if len(owners) > 1:
        return walk.ambiguous_deps(name, [dep for owner in owners for dep in owner.deps(name, walk.interner)], node)
    if name == source.alias and source.output is not None:
        return bounded(dep for deps in source.output.deps for dep in deps)
    walk.diagnose("unresolved", f"{source.alias or 'the subquery'} has no column {name}", node)
    return ()


def unqualified(walk: Walk, name: str, node: exp.Expr, scope: Scope, text: str = "") -> Deps:
    """Return the dependencies of an unqualified column name, looking outwards through the scopes.

    Where the scope itself owns the name, it is remembered under the written ``text``.
    """
    if name == "default" and walk.dialect in ("tsql", "fabric") and not node.this.args.get("quoted"):  # f(1, DEFAULT)
        return ()
    level: Scope | None = scope
    while level is not None:
        found = _in_scope(walk, name, node, level)
        if found is not None:
            if level is scope and text and scope.aliases_first is None:
                scope.seen[text] = found
            return found
        level = level.parent
    return _of_no_scope(walk, name, node, scope)


def _of_no_scope(walk: Walk, name: str, node: exp.Expr, scope: Scope) -> Deps:
    """Resolve a name that no source is known to have: of the dialect, a variable, a whole row, or not understood."""
    bare = name.strip('"').lower()
    if bare in GRAPH_COLUMNS:
        return _graph_column(walk, name, scope)
    if walk.variables and (value := variable_deps(walk, name, node)) is not None:
        return value
    if bare in PSEUDO_COLUMNS or bare.startswith("metadata$") or name in walk.parameters:
        return ()
    if name.startswith(('"@', '"$', '"#')):
        return ()
    source = scope.find((name,))
    if source is not None:
        return whole_row(walk, source, node)
    if name in scope.aliases:  # not by the rules of the dialect, but nothing else can be meant
        return scope.aliases[name]
    walk.diagnose("unresolved", f"no source in scope has a column {name}", node)
    return _any_of(walk, scope)


def _any_of(walk: Walk, scope: Scope) -> Deps:
    """Return anything of the tables of a scope, as the dependencies of a name that is not resolved."""
    return tuple(
        walk.interner.ref(s.table.id, ROWS) | OPAQUE for s in scope.sources if s.table is not None and not s.hidden
    )


def _graph_column(walk: Walk, name: str, scope: Scope) -> Deps:
    """``$node_id`` and its like, of the one table of the scope that can have it."""
    tables = [s.table for s in scope.sources if s.table is not None]
    if len(tables) > 1:  # the one of them that is of its kind
        is_of_node = name.strip('"').lower() == "$node_id"
        tables = [table for table in tables if is_of_node != ('"$from_id"' in table.columns)]
    return tables[0].deps(name, walk.interner) if len(tables) == 1 else ()


def _in_scope(walk: Walk, name: str, node: exp.Expr, scope: Scope) -> Deps | None:
    """Return what a name stands for among the sources and aliases of one scope; None where it is none of them."""
    merged = scope.merged.get(name)
    if merged is not None:
        return merged
    # Some dialects look among the aliases of the SELECT list before the columns of FROM.
    if scope.aliases_first is not None and name in scope.aliases and name not in scope.aliases_first:
        return scope.aliases[name]
    owners = [source for source in scope.sources if name in source.known and not source.hidden]
    if owners:
        return _owned(walk, name, node, scope, owners)
    alias = scope.aliases.get(name)
    if alias is not None and (walk.lateral_aliases or scope.aliases_visible) and name not in scope.correlated:
        return alias
    possible = _possible_owners(scope)
    if not possible:
        return None
    # PostgreSQL and others: the alias of a table, where a value is expected, is its whole row.
    row = scope.by_alias.get(name) if _names_rows(walk, node) else None
    if row is not None and not any(source.is_used(name) or source.describes(name) for source in possible):
        return whole_row(walk, row, node)
    return _from_open(walk, name, node, scope, possible)


def _owned(walk: Walk, name: str, node: exp.Expr, scope: Scope, owners: list[Source]) -> Deps | None:
    """Return the dependencies of a column that one or more sources are known to have."""
    if len(owners) == 1:
        return owners[0].get(name, walk.interner)
    if walk.dialect == "bigquery" and scope.by_alias.get(name) in owners:  # range variables hide columns
        return scope.by_alias[name].get(name, walk.interner)
    deps = [dep for source in owners for dep in source.get(name, walk.interner) or ()]
    return walk.ambiguous_deps(name, deps, node)


def _possible_owners(scope: Scope) -> list[Source]:
    """Return the sources that may have further columns: tables first, rows of functions only where there are none."""
    tables = [source for source in scope.sources if source.is_open and not source.hidden]
    return tables or [source for source in scope.sources if source.is_virtual]


def _names_rows(walk: Walk, node: exp.Expr) -> bool:
    """True if the name of a FROM item may stand for its row: in Oracle's ``VALUE(t)`` and ``REF(t)`` only."""
    if walk.dialect not in _ROWS_UNNAMED:
        return True
    return isinstance(node.parent, nodes.Anonymous) and node.parent.name.upper() in ("VALUE", "REF")


def _from_open(walk: Walk, name: str, node: exp.Expr, scope: Scope, sources: list[Source]) -> Deps | None:
    """Resolve a name that no source is known to have, among sources whose columns are not all known."""
    interner = walk.interner
    # A statement that qualifies the name has shown whose it is: it would not have been valid otherwise.
    shown = [source for source in sources if source.is_used(name)]
    if len(shown) == 1:
        return shown[0].assume(name, interner)
    possible = [(source, deps) for source in sources if (deps := source.assume(name, interner)) is not None]
    if name in walk.parameters:
        return variable_deps(walk, name, node) or ()
    argument = argument_deps(walk, name, scope)
    if argument is not None:
        return argument
    if name.strip('"').lower() in own_names(walk.dialect):
        return ()
    if len(possible) == 1:
        source, deps = possible[0]
        return _assumed(walk, name, node, scope, source, deps)
    if not possible:
        several = [dep for source in sources for owner in source.owners() for dep in owner.deps(name, interner)]
        return walk.ambiguous_deps(name, several, node) if several else None
    described = _described(walk, name, scope, possible) if not shown else None
    if described is not None:
        return described
    return walk.ambiguous_deps(name, [dep for _, deps in possible for dep in deps], node)


def _assumed(walk: Walk, name: str, node: exp.Expr, scope: Scope, source: Source, deps: Deps) -> Deps:
    """Take a name as a column of the only source that may have it, unless an enclosing query has one, too.

    Others rely on it only where there is no other source: beside one that is known not to have the name, the statement
    may be one that a change has broken.
    """
    outer = _outer_owner(walk, name, scope.around)
    if outer is not None:
        return walk.ambiguous_deps(name, [*deps, *outer], node)
    owners = source.owners()
    if len(owners) == 1 and scope.around is None and len(scope.sources) == 1:
        owners[0].used.add(name)
    return deps


def _described(walk: Walk, name: str, scope: Scope, possible: list[tuple[Source, Deps]]) -> Deps | None:
    """Return the dependencies of a name that the documentation of one source lists, where all are documented."""
    found: Deps | None = None
    for source, deps in possible:
        lists = source.describes(name)
        if lists is None or (lists and found is not None):
            return None
        if lists:
            found = deps
    if found is None or _outer_owner(walk, name, scope.around) is not None:
        return None
    walk.presumed = True
    return found


def argument_deps(walk: Walk, name: str, scope: Scope | None) -> Deps | None:
    """Return the dependencies of an argument of the function that is being inlined."""
    while scope is not None and walk.inlining:
        for source in scope.sources:
            if source.is_arguments and name in source.known:
                return source.get(name, walk.interner)
        scope = scope.parent
    return None


def _outer_owner(walk: Walk, name: str, scope: Scope | None) -> Deps | None:
    while scope is not None:
        for source in scope.sources:
            found = source.get(name, walk.interner)
            if found is not None:
                return found
        scope = scope.parent
    return None


def _qualified(walk: Walk, node: exp.Column, scope: Scope) -> Deps:
    """Resolve a name of several parts: ``alias.column``, ``schema.table.column``, or fields below a column."""
    parts = node.parts
    last = parts[-1]
    if type(last) is nodes.Star:
        return _unnamed(walk, node, last, walk.qualifier(parts[:-1]), scope)
    names = walk.qualifier(parts)
    if type(last) is not nodes.Identifier:
        return _unnamed(walk, node, last, names[:-1], scope)
    if names[-1] in ("nextval", "currval") and scope.find(names[:-1]) is None:  # of a sequence
        return ()
    # The longest qualifier that names a source wins: a.b.c as (catalog.)schema.table, then as alias, then as
    # column.
    for cut in range(len(names) - 1, 0, -1):
        source = scope.find(names[:cut])
        if source is not None:
            built = built_field(walk, source, names[cut], names[cut + 1 :])
            if built is not None:
                return built
            deps = of_source(walk, source, names[cut], node)
            return _fields_below(walk, deps, names[cut + 1 :])
    if walk.variables and (value := _record_field(walk, names, node, scope)) is not None:
        return value
    if walk.dialect == "oracle" and names[0].startswith(("dbms_", "utl_")):  # constants of supplied packages
        return ()
    level: Scope | None = scope
    while level is not None:
        for source in level.sources:
            built = built_field(walk, source, names[0], names[1:])
            if built is not None:
                return built
        found = _in_scope(walk, names[0], node, level)
        if found is not None:
            return _fields_below(walk, found, names[1:])
        level = level.parent
    if names[0] in walk.parameters:
        return ()
    walk.diagnose("unresolved", f"no source in scope is named {'.'.join(names[:-1])}", node)
    return _any_of(walk, scope)


def _record_field(walk: Walk, names: tuple[str, ...], node: exp.Expr, scope: Scope) -> Deps | None:
    """Return the dependencies of a field of a record, unless a column of the name is known."""
    level: Scope | None = scope
    while level is not None:
        if any([names[0] in source.known for source in level.sources]):  # noqa: C419
            return None
        level = level.parent
    return variable_field(walk, names[0], names[1:], node)


def built_field(walk: Walk, source: Source, column: str, path: tuple[str, ...]) -> Deps | None:
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
            return _fields_below(walk, shape.deps[position], steps[i + 1 :])
        shape = inner
    return None


def _fields_below(walk: Walk, deps: Deps, path: tuple[str, ...]) -> Deps:
    if not path:
        return deps
    text = ".".join(path)
    field = walk.interner.field
    return tuple(dict.fromkeys(dep if dep & KIND_MASK == OPAQUE else field(dep, text) for dep in deps))


def _unnamed(walk: Walk, node: exp.Expr, this: exp.Expr, qualifier: tuple[str, ...] | None, scope: Scope) -> Deps:
    """Resolve a column that has no identifier: ``t.*`` inside an expression, ``$1`` and ``t.$1``."""
    if isinstance(this, (nodes.Parameter, nodes.Placeholder)):
        return positional(walk, this, qualifier, scope)
    find = by_class(UNNAMED, type(this))
    if find is not None:
        return find(walk, node, this, qualifier, scope)
    text = this.name if hasattr(this, "name") else ""
    return unqualified(walk, walk.name(text), node, scope) if text else ()
