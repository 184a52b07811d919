"""``why --sql``: a query over a folder of relations, with the provenance of its rows; no store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from govtool.app.data_folder import DataFolder, opened_folder
from govtool.errors import EngineError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.answers.why import WhyAnswer
    from govtool.records.plan.tree import Node
    from govtool.workflow.annotate.tables import Executor
    from govtool.workflow.why import QueryProvenance

SEMIRINGS = (
    "polynomial", "how", "why", "why-minimal", "which", "where", "count", "bool", "cost", "trust", "prob", "shapley",
    "banzhaf", "responsibility",
)  # fmt: skip
DEFAULT = ("polynomial", "which", "count")
MOST = 20
"""Parts of a sum that a capped polynomial has."""
VALUED = ("cost", "trust", "prob")
"""Semirings that need a value for every token."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class OpenedQuery:
    """A query over the relations of a folder.

    Attributes:
        plan: The query.
        folder: Its relations.
    """

    plan: Node
    folder: DataFolder


@contextmanager
def opened_query(sql: str, data: str, keys: Mapping[str, str], dialect: str) -> Iterator[OpenedQuery]:
    """Read a query and the relations of its folder.

    Raises:
        UsageError: The folder, a file or the query is wrong; see ``opened_folder`` and ``from_sql``.
    """
    from govtool.records.plan.from_sql import from_sql

    with opened_folder(Path(data), keys) as folder:
        yield OpenedQuery(from_sql(sql, folder.relations, dialect), folder)


_ENGINES = ("pyspark", "py4j", "duckdb", "_duckdb")
"""Modules whose exceptions are about the query: a division by zero, a cast of what is no number."""


def evaluated(work: Callable[[Executor], _T]) -> tuple[_T, str]:
    """Do something with the first engine that is exact; return it with the engine's name.

    Raises:
        EngineError: None is, or the query fails in it (``engine.failed``).
    """
    from govtool.app.records import engines
    from govtool.records.sql.dialect import NotExact

    refusals = []
    for engine in engines(session()):
        try:
            return work(engine.start()), engine.name
        except NotExact as refusal:
            refusals.append(f"{engine.name} does not evaluate it exactly: {refusal}")
        except EngineError as error:
            before = "; ".join(refusals)
            raise EngineError(f"{before}; {error.message}", code=error.code, hint=error.hint) from error
        except Exception as error:
            if not type(error).__module__.startswith(_ENGINES):
                raise
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise EngineError(f"{engine.name} cannot evaluate the query: {reason}", code="engine.failed") from error
    raise EngineError(f"the query cannot be evaluated: {'; '.join(refusals)}", code="engine.not-exact")


def session() -> Any:
    """What a query of a text runs in: ANSI mode, UTC."""
    from govtool.records.plan.nodes import Session

    return Session("", ansi=True, zone="UTC")


def why(
    sql: str,
    data: str,
    semirings: Sequence[str] = DEFAULT,
    *,
    keys: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, float]] | None = None,
    dialect: str = "spark",
    exact: bool = False,
    capped: bool = False,
) -> WhyAnswer:
    """The rows of a query with their annotations.

    Args:
        sql: One SELECT.
        data: A folder of relations.
        semirings: Of ``SEMIRINGS``.
        keys: For relations, the column that is their token.
        values: For ``cost``, ``trust`` and ``prob`` the value of each token.
        dialect: What the text is written in; it means what Spark SQL means by it.
        exact: Refuse what can only be sampled.
        capped: Write out the first parts of long polynomials only.

    Raises:
        UsageError: See ``opened_query``; a semiring that does not fit, or has no values.
        EngineError: No engine evaluates the query exactly.
    """
    names = checked_semirings(semirings, values or {})
    with opened_query(sql, data, keys or {}, dialect) as opened:

        def work(executor: Executor) -> WhyAnswer:
            found = provenance(opened, executor)
            return _answer(opened, executor, found, names, values or {}, exact, MOST if capped else None)

        answer, engine = evaluated(work)
    from dataclasses import replace

    return replace(answer, engine=engine)


def checked_semirings(semirings: Sequence[str], values: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The names of semirings, each once.

    Raises:
        UnknownNameError: There is no such semiring (``usage.unknown-semiring``).
        UsageError: One needs values, and there are none (``usage.values``).
    """
    import difflib

    names = list(dict.fromkeys(semirings))
    for name in names:
        if name not in SEMIRINGS:
            raise UnknownNameError(
                f"no semiring {name}",
                code="usage.unknown-semiring",
                nearest=tuple(difflib.get_close_matches(name, SEMIRINGS)),
                hint=f"of {', '.join(SEMIRINGS)}",
            )
    for name in VALUED:
        if name in names and name not in values:
            raise UsageError(
                f"{name} needs a value for every token", code="usage.values", hint=f"--values {name}=FILE.json"
            )
    return names


def provenance(opened: OpenedQuery, executor: Executor) -> QueryProvenance:
    """A query annotated."""
    from govtool.workflow.annotate.query import annotate_query
    from govtool.workflow.semirings.tokens import Tokens
    from govtool.workflow.why import QueryProvenance

    query = annotate_query(opened.plan, executor, opened.folder.sizes)
    return QueryProvenance(query, Tokens(query.sources, opened.folder.tokens))


def _answer(
    opened: OpenedQuery,
    executor: Executor,
    found: QueryProvenance,
    names: list[str],
    values: Mapping[str, Mapping[str, float]],
    exact: bool,
    most: int | None,
) -> WhyAnswer:
    from govtool.answers.why import WhyAnswer, WhyTuple
    from govtool.app.why_columns import ANNOTATIONS, Request

    rows = found.rows
    notes: list[str] = []
    request = Request(found, rows, values, exact, opened, executor, notes, most)
    columns = [column for name in names for column in ANNOTATIONS[name](request)]
    tuples = tuple(
        WhyTuple(row.values, row.multiplicity, {key: made[at] for key, made in columns if made[at] is not None})
        for at, row in enumerate(rows)
    )
    titles = tuple(column.name for column in found.query.columns)
    return WhyAnswer(titles, _real(tuples), found.gains_possible, notes=tuple(notes))


def _real(tuples: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rows without candidates whose annotation is 0: they can never be there."""
    return tuple(each for each in tuples if each.multiplicity or each.annotations.get("polynomial") != "0")


def read_values(options: Sequence[str]) -> dict[str, dict[str, float]]:
    """Read ``cost=F.json``: an object of numbers by token.

    Raises:
        UsageError: The option or the file is something else (``usage.values``).
    """
    found: dict[str, dict[str, float]] = {}
    for option in options:
        name, equals, file = option.partition("=")
        if not equals or name not in VALUED:
            raise UsageError(f"no values: {option}", code="usage.values", hint="--values cost=FILE.json, trust=, prob=")
        try:
            read = json.loads(Path(file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read values: {error}", code="usage.values", location=file) from error
        if not isinstance(read, dict) or not all(_is_number(value) for value in read.values()):
            raise UsageError("values are an object of numbers by token", code="usage.values", location=file)
        found[name] = read
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def read_keys(options: Sequence[str]) -> dict[str, str]:
    """Read ``TABLE=COLUMN``.

    Raises:
        UsageError: An option is something else (``usage.key``).
    """
    found = {}
    for option in options:
        table, equals, column = option.partition("=")
        if not equals or not table or not column:
            raise UsageError(f"no key: {option}", code="usage.key", hint="--key TABLE=COLUMN")
        found[table] = column
    return found
