"""How many rows a statement changed, as scripts read it of the statement before: a variable that nobody assigns.

``GET DIAGNOSTICS n = ROW_COUNT`` and FOUND (PostgreSQL), ``@@ROWCOUNT`` (T-SQL), ``@@row_count`` (BigQuery),
``ROW_COUNT()`` (MySQL), ``SQL%ROWCOUNT`` (Oracle), ``SQLROWCOUNT`` (Snowflake). Behind each statement that sets it
stands an assignment of our own, of the count of the rows that the statement touches, so that what decides about them
counts.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control import variables
from govtool.capture.sql.scripts.control.variables import AssignmentTarget
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.syntax.lexer import split, word
from govtool.capture.sql.syntax.marks import ROW_COUNT
from govtool.names import fold

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(variables.PLPGSQL, (ROW_COUNT, "found")),
    **dict.fromkeys(variables.MARKED, (ROW_COUNT,)),
    "bigquery": (ROW_COUNT,),
    "snowflake": ("sqlrowcount", "sqlfound", "sqlnotfound"),
    "oracle": ("sql", "rowcount", "found", "notfound"),  # SQL%ROWCOUNT is read as ``sql`` modulo ``rowcount``
}
"""By dialect the names under which the count is read."""
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(variables.PLPGSQL, ("row_count", "found")),
    **dict.fromkeys(variables.TSQL, ("rowcount",)),
    **dict.fromkeys(variables.MYSQL, ("row_count(", "found_rows(", "diagnostics")),
    "bigquery": ("@@row_count",),
    "snowflake": ("sqlrowcount", "sqlfound", "sqlnotfound"),
    "oracle": ("rowcount", "found"),
}
"""By dialect what is in the text of a script that reads it: a column may well be called ``row_count``."""
_ANYWHERE: Final = variables.MARKED | {"bigquery", "snowflake"}
"""Dialects that have it outside of routines and blocks, too."""
_CALLS: Final = frozenset({"CALL", "EXEC", "EXECUTE"})
_FETCHES: Final = frozenset({"FETCH", "FOR", "FOREACH"})
_QUERIES: Final = frozenset({"SELECT", "WITH", "PERFORM"}) | _FETCHES


def mentioned(text: str, dialect: str) -> bool:
    """Return whether a script may read how many rows a statement changed."""
    words = _WORDS.get(dialect)
    if words is None:
        return False
    lowered = text.lower()  # a search without regard to case takes fifty times as long
    return any([each in lowered for each in words])  # noqa: C419


def note(reader: StatementReader, tokens: list[Token], tree: exp.Expr | None, status: str) -> None:
    """Add the assignment of the count of rows behind a statement that sets it."""
    dialect = reader.lex.name
    names = _NAMES.get(dialect)
    if names is None or not (reader.flow.inside or dialect in _ANYWHERE):
        return
    if tree is not None and tree.args.get("counts"):
        return
    targets = [AssignmentTarget(_folded(name, dialect)) for name in names]
    first = word(tokens[0])
    if status in ("failed", "opaque") or first in _CALLS:
        reason = "the rows that a statement without known effect touched"
        _add(reader, tokens, variables.tree_of(targets, reason=reason, origin="exec", keeps=True))
    elif type(tree) is not exp.Set:
        _count(reader, tokens, targets, tree)
    elif first in _QUERIES and tree.args.get("fetches"):
        for target in targets:
            _add(reader, tokens, variables.tree_of([target], fetches=tree.args["fetches"], keeps=True))
    elif first in _QUERIES:
        _count(reader, tokens, targets, tree.args.get("expression"))


def _count(
    reader: StatementReader, tokens: list[Token], targets: list[AssignmentTarget], tree: exp.Expr | None
) -> None:
    counted = None if tree is None else counted_rows(tree, reader.lex.name)
    if counted is not None:
        counted.set("expressions", [exp.Count(this=exp.Star(), big_int=True) for _ in targets])
        keeps = isinstance(tree, exp.Query)
        _add(reader, tokens, variables.tree_of(targets, expression=counted, quiet=True, keeps=keeps))


def _add(reader: StatementReader, tokens: list[Token], tree: exp.Expr) -> None:
    tree.set("counts", True)  # one of our own, which counts nothing itself
    reader.add(tokens, tree, "ignored", head="assignment")


def diagnosed(reader: StatementReader, tokens: list[Token]) -> bool:
    """Read ``GET [CURRENT] DIAGNOSTICS n = ROW_COUNT, …``; False if it is something else."""
    at = next((index for index, token in enumerate(tokens[:3]) if word(token) == "DIAGNOSTICS"), 0)
    if not at or word(tokens[1]) == "STACKED":
        return False
    dialect = reader.lex.name
    for item in split(tokens[at + 1 :]):
        target = variables.target_of(item, dialect)
        if target.name and word(item[-1]) == "ROW_COUNT":
            variables.fetch(reader, tokens, [target], ROW_COUNT, head="assignment")
        elif target.name:
            variables.declare(reader, tokens, [target])
    return True


# -- the rows that a statement touches ------------------------------------------------------------------------------


def counted_rows(tree: exp.Expr, dialect: str) -> exp.Select | None:
    """Return a query over the rows that a statement touches, without its columns; None if it counts none."""
    if isinstance(tree, exp.Query):
        return _of_query(tree)
    if isinstance(tree, exp.Insert):
        return _of_insert(tree)
    if isinstance(tree, exp.Merge):
        return _of_merge(tree)
    if isinstance(tree, (exp.Update, exp.Delete)):
        return _of_change(tree, dialect)
    return None


def changed_table(tree: exp.Expr) -> exp.Table | None:
    """Return the table that a statement changes, as written; None where it is none."""
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    return target if isinstance(target, exp.Table) else None


def named(table: exp.Table) -> exp.Table:
    """Return a table of the same name, without alias and partitions."""
    parts = {key: table.args.get(key) for key in ("this", "db", "catalog")}
    return exp.Table(**{key: part.copy() if isinstance(part, exp.Expr) else part for key, part in parts.items()})


def _of_query(query: exp.Query, *others: exp.Expr) -> exp.Select | None:
    """The rows of a query; None where it reads no table."""
    if query.find(exp.From) is None:
        return None
    inner = query.copy()
    inner.set("into", None)
    joins = [exp.Join(this=other.copy(), kind="CROSS") for other in others]
    return exp.Select(from_=exp.From(this=exp.Subquery(this=inner, alias=_alias())), joins=joins)


def _of_insert(tree: exp.Insert) -> exp.Select:
    """The rows of the query; of the table, too, where a conflict with its rows decides."""
    table = changed_table(tree)
    decides = tree.args.get("conflict") is not None or tree.args.get("ignore")
    others = [named(table)] if decides and table is not None else []
    query = tree.expression
    found = _of_query(query, *others) if isinstance(query, exp.Query) else None
    if found is None:
        from_ = exp.From(this=others[0].copy()) if others else None
        found = exp.Select(from_=from_)
    return _with(found, tree)


def _of_merge(tree: exp.Merge) -> exp.Select:
    """The rows of both sides, by the condition and those of the branches."""
    using, condition, whens = tree.args.get("using"), tree.args.get("on"), tree.args.get("whens")
    on = condition.copy() if isinstance(condition, exp.Expr) else None
    joins = [exp.Join(this=using.copy(), on=on, side="FULL")] if isinstance(using, exp.Expr) else []
    found = exp.Select(from_=exp.From(this=tree.this.copy()), joins=joins)
    tests = [when.args.get("condition") for when in (whens.expressions if whens is not None else ())]
    conditions = [test.copy() for test in tests if isinstance(test, exp.Expr)]
    if conditions:
        found.set("where", exp.Where(this=exp.or_(*conditions)))
    return _with(found, tree)


def _of_change(tree: exp.Update | exp.Delete, dialect: str) -> exp.Select:
    """The rows of the table that the other tables and the condition choose."""
    args = tree.args
    listed = [args.get("from_"), *(args.get("using") or ())]
    others = [item.this if isinstance(item, exp.From) else item for item in listed if item is not None]
    if dialect in variables.TSQL and others:  # the table is one of them, by its alias or its name
        first, others = others[0], others[1:]
    else:
        first = tree.this
    joins = [join.copy() for join in args.get("joins") or ()]
    joins += [exp.Join(this=other.copy(), kind="CROSS") for other in others]
    where = args.get("where")
    found = exp.Select(
        from_=exp.From(this=first.copy()), joins=joins, where=where.copy() if where is not None else None
    )
    return _with(found, tree)


def _with(query: exp.Select, tree: exp.Expr) -> exp.Select:
    """The query with the CTEs of the statement."""
    ctes = tree.args.get("with_")
    if ctes is not None:
        query.set("with_", ctes.copy())
    return query


def _folded(name: str, dialect: str) -> str:
    return name if name == ROW_COUNT else fold(name, quoted=False, dialect=dialect)


def _alias() -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier("counted_rows"))


def values_of(tree: exp.Expr) -> list[exp.Expr]:
    """The values that a statement gives columns, but for those of a query."""
    if isinstance(tree, exp.Merge):
        whens = tree.args.get("whens")
        return [value for when in (whens.expressions if whens is not None else ()) for value in values_of(when)]
    if isinstance(tree, exp.When):
        then = tree.args.get("then")
        return values_of(then) if isinstance(then, (exp.Insert, exp.Update)) else []
    if isinstance(tree, exp.Update):
        return [item.expression.copy() for item in tree.expressions if isinstance(item, exp.EQ)]
    given = tree.args.get("expression")
    if isinstance(given, exp.Values):
        return [value.copy() for row in given.expressions for value in (getattr(row, "expressions", None) or [row])]
    return [value.copy() for value in given.expressions] if isinstance(given, exp.Tuple) else []
