"""A query over a folder of relations, opened and annotated: what ``why --sql`` and ``whatif delete --sql`` share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from govtool.app.why.data_folder import DataFolder, opened_folder
from govtool.errors import EngineError, UsageError
from govtool.redaction import clean_failure

if TYPE_CHECKING:
    from govtool.records.plan.tree import Node
    from govtool.workflow.annotate.tables import Executor
    from govtool.workflow.why import QueryProvenance

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

    with opened_folder(Path(data), keys, sql) as folder:
        try:
            yield OpenedQuery(from_sql(sql, folder.relations, dialect), folder)
        except UsageError as error:
            if error.code == "usage.why-unsupported" and error.location is None:  # of a plan, which has no places
                error.location = _function_place(sql, error.message)
            raise


def _function_place(sql: str, message: str) -> str | None:
    """``line:column`` of the first call of the function that a message names in capitals."""
    name = re.search(r"\b[A-Z][A-Z_]+\b", message)
    call = re.search(rf"\b{name[0]}\s*\(", sql, re.IGNORECASE) if name is not None else None
    if call is None:
        return None
    before = sql[: call.start()]
    return f"{before.count(chr(10)) + 1}:{call.start() - before.rfind(chr(10))}"


_ENGINES = (("duckdb", "Error"), ("pyspark.errors", "PySparkException"), ("py4j.protocol", "Py4JError"))
"""Exceptions that are about the query: a division by zero, a cast of what is no number."""


def _engine_errors() -> tuple[type[Exception], ...]:
    """The exceptions of the engines that were started: those of a module that is not there cannot be raised."""
    return tuple(getattr(sys.modules[module], name) for module, name in _ENGINES if module in sys.modules)


def evaluated(work: Callable[[Executor], _T]) -> tuple[_T, str]:
    """Do something with the first engine that is exact; return it with the engine's name.

    Raises:
        EngineError: None is, or the query fails in it (``engine.failed``).
    """
    from govtool.app.records.engines import engines
    from govtool.records.sql.dialect import NotExact

    refusals = []
    last: NotExact | None = None
    for engine in engines(session()):
        try:
            return work(engine.start()), engine.name
        except NotExact as refusal:
            refusals.append(f"{engine.name} does not evaluate it exactly: {refusal}")
            last = refusal
        except EngineError as error:
            before = "; ".join(refusals)
            raise EngineError(f"{before}; {error.message}", code=error.code, hint=error.hint) from error
        except _engine_errors() as error:
            raise EngineError(
                f"{engine.name} cannot evaluate the query: {clean_failure(error)}", code="engine.failed"
            ) from error
    _refuse_failure(last, refusals)
    raise EngineError(f"the query cannot be evaluated: {'; '.join(refusals)}", code="engine.not-exact")


def _refuse_failure(last: Exception | None, refusals: Sequence[str]) -> None:
    """Refuse a query that fails in the last engine: Spark, whose meaning it has."""
    from govtool.records.sql.dialect import EvaluationFailed
    from govtool.workflow.queries.rerun import RerunFailed

    if isinstance(last, RerunFailed):
        hint = "--mode propagate answers, with 'unknown' for what only a new run decides"
        raise EngineError(f"the query fails without the records: {last}", code="engine.failed", hint=hint)
    if isinstance(last, EvaluationFailed) and len(refusals) > 1:
        raise EngineError(f"the query fails: {last}", code="engine.failed")


def session() -> Any:
    """What a query of a text runs in: ANSI mode, UTC."""
    from govtool.records.plan.nodes import Session

    return Session("", ansi=True, zone="UTC")


def provenance(opened: OpenedQuery, executor: Executor) -> QueryProvenance:
    """A query annotated."""
    from govtool.workflow.annotate.query import annotate_query
    from govtool.workflow.semirings.tokens import Tokens
    from govtool.workflow.why import QueryProvenance

    query = annotate_query(opened.plan, executor, opened.folder.sizes)
    return QueryProvenance(query, Tokens(query.sources, opened.folder.tokens))
