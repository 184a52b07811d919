"""Whole rows and columns by position: what ``*``, ``f(*)``, ``to_json(t)`` and Snowflake's ``$1`` stand for."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import OPAQUE, REF_SHIFT, STAR, Deps, bounded
from govtool.capture.sql.walk.relation import OpenStar, QueryOutput, Source, TableInfo, starred
from govtool.capture.sql.walk.scope import MergingJoin, Scope

MERGED_IN_PLACE: Final = frozenset({"duckdb", "sqlite", "clickhouse"})
"""Dialects whose ``*`` leaves the columns of USING where the left side has them; elsewhere they come first."""


MAX_COLUMNS: Final = 50_000
"""Columns of a query; databases allow at most 10,000."""


def table_output(walk: Walk, table: TableInfo) -> QueryOutput:
    """Return the output of ``SELECT * FROM table``."""
    output = QueryOutput()
    for position, (name, type_) in enumerate(table.columns.items()):
        output.add(name, starred(table.deps(name, walk.interner)))
        if type_:
            output.types[position] = type_
    if not table.complete:
        for name in [name for name in table.used.listed() if name not in table.columns]:
            output.add(name, starred(table.deps(name, walk.interner)))
        output.open.append(OpenStar(table))
    return output


def source_star(walk: Walk, source: Source) -> QueryOutput:
    """Return the output of ``source.*``."""
    if source.table is not None:
        return table_output(walk, source.table)
    return source.output or QueryOutput()


def star_of(walk: Walk, scope: Scope) -> QueryOutput:
    """Return the output of a bare ``*`` over a scope: each source in order, merged columns once."""
    outputs = [QueryOutput() if source.hidden else source_star(walk, source) for source in scope.sources]
    if scope.joins:
        # A merging join's columns take the place of those of its sides; the first source stands for all of them.
        for join in scope.joins:
            left, right = chained(outputs[join.left : join.right]), chained(outputs[join.right : join.end])
            outputs[join.left : join.end] = [
                _star_of_join(walk, join, left, right),
                *(QueryOutput() for _ in range(join.left + 1, join.end)),
            ]
    return outputs[0] if len(outputs) == 1 else chained(outputs)


def _star_of_join(walk: Walk, join: MergingJoin, left: QueryOutput, right: QueryOutput) -> QueryOutput:
    """Return the output of ``*`` over a merging join: its columns first, as in the standard, or in their place."""
    output = QueryOutput()
    in_place = walk.dialect in MERGED_IN_PLACE
    merged = {name: starred(deps) for name, deps in join.merged.items()}
    if not in_place:
        for name, deps in merged.items():
            output.add(name, deps)
        extend(output, left, set(merged))
    else:
        for name in merged:
            if name not in left.index():
                output.add(name, merged[name])
        at = len(output.names)
        extend(output, left)
        for position, name in enumerate(left.names):
            output.deps[at + position] = merged.get(name, left.deps[position])
    extend(output, right, set(merged))
    return output


def chained(outputs: list[QueryOutput]) -> QueryOutput:
    """Return the columns of several outputs, one behind the other."""
    output = QueryOutput()
    for more in outputs:
        extend(output, more)
    return output


def extend(output: QueryOutput, more: QueryOutput, skip: set[str] | None = None) -> None:
    """Add the columns of another output behind its own, but for those to skip.

    Raises:
        ValueError: There are more columns than in any query: each of a few dozen ``x.*, y.*`` doubles them.
    """
    offset = len(output.names)
    if offset + len(more.names) > MAX_COLUMNS:
        raise ValueError(f"a query of more than {MAX_COLUMNS:,} columns")
    for position, (name, deps) in enumerate(zip(more.names, more.deps, strict=True)):
        if skip and name in skip:
            continue
        output.add(name, deps)
        if position in more.fields:
            output.fields[len(output.names) - 1] = more.fields[position]
    for position, type_ in more.types.items():
        output.types[offset + position] = type_
    for star in more.open:
        output.open.append(
            OpenStar(star.table, star.except_ | frozenset(skip or ()), star.rename, star.arm, candidate=star.candidate)
        )


def passing(walk: Walk, output: QueryOutput, node: exp.Expr) -> Deps:
    """Return the dependencies on all columns of an output, those behind a ``*`` that is not expanded included."""
    interner = walk.interner
    found = [dep & ~STAR for deps in output.deps for dep in deps]
    unknown = False
    for star in output.open:
        table = star.table
        unknown = unknown or not table.virtual
        shown = [name for name in table.used.listed() if name not in star.except_]
        found.extend(dep | star.arm for name in shown for dep in table.deps(name, interner))
        found.extend(dep | star.arm for dep in table.hidden(interner))
    if unknown:
        walk.diagnose("star-unresolved", "the columns behind a * are not all known", node)
    return bounded(found)


def whole_row(walk: Walk, source: Source, node: exp.Expr) -> Deps:
    """Return the dependencies on all columns of a FROM item: ``to_json(t)``, ``count(t.*)``."""
    return passing(walk, source_star(walk, source), node)


def positional(walk: Walk, node: exp.Expr, qualifier: tuple[str, ...] | None, scope: Scope) -> Deps:
    """Return the dependencies of Snowflake's ``$n``, a column by its position; nothing for another parameter."""
    number = node.name
    if not number.isdigit() or walk.dialect != "snowflake":
        return ()
    shown = [source for source in scope.sources if not source.hidden]
    if qualifier:
        found = scope.find(qualifier)
        shown = [found] if found is not None else []
    if len(shown) == 1 and shown[0].table is not None and _is_file(shown[0].table.id):
        return shown[0].table.deps(f"_c{number}", walk.interner)
    position = int(number) - 1
    for source in shown:
        output = source_star(walk, source)
        if output.open:  # what is counted is not known from here on
            return bounded((dep >> REF_SHIFT << REF_SHIFT) | OPAQUE for s in shown for dep in whole_row(walk, s, node))
        if 0 <= position < len(output.deps):
            return tuple(dep & ~STAR for dep in output.deps[position])
        position -= len(output.deps)
    if shown:
        walk.diagnose("unresolved", f"no source in scope has a column ${number}", node)
    return ()


def _is_file(dataset: str) -> bool:
    """Return whether a dataset is a stage or file, whose columns have no names."""
    return dataset.startswith('"@') or (dataset.startswith('"') and "://" in dataset)
