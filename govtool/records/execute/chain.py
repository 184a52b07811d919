"""Executors in order: the next one is started when the one before does not give what Spark gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from threading import RLock
from typing import Any, TypeVar

from govtool.errors import EngineError, UsageError
from govtool.records.cells import zoned_table
from govtool.records.execute.inputs import ReadFiles
from govtool.records.leaves import with_relations
from govtool.records.plan.expressions import Attribute, Expression
from govtool.records.plan.nodes import Relation, Session, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import Struct
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.statement import KEPT
from govtool.records.trace.back import Executor
from govtool.records.trace.segment import unique

_T = TypeVar("_T")
_PREFIX = "chain_"
_FAILURES = ("DuckDB: ", "Spark: ")
"""How reasons begin that an engine gives while it runs: a file that cannot be read may be behind them."""
_PARSER = "Spark"
"""The engine that reads conditions which govtool's reader does not cover."""


@dataclass(frozen=True, slots=True)
class PlanEngine:
    """An executor that is started when it is needed.

    Attributes:
        name: For people.
        start: Starts it.

    ``start`` raises ``EngineError`` where it cannot be started, with what to install as the hint.
    """

    name: str
    start: Callable[[], Executor]


@dataclass(slots=True)
class ExecutorChain:
    """Evaluates plans by the first of several executors that is exact.

    What was kept is evaluated again by the next one, once it is read there.
    """

    engines: Sequence[PlanEngine]
    session: Session | None = None
    """What the plans ran in; None: in ANSI mode."""
    current: int = 0
    refusals: list[tuple[str, str]] = field(default_factory=list)
    """Names of engines that were given up, and why."""
    _started: Executor | None = None
    _plans: dict[str, Node] = field(default_factory=dict)
    _kept: dict[str, Relation] = field(default_factory=dict)
    _files: ReadFiles = field(default_factory=ReadFiles)
    _conditions: dict[Any, Expression | None] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: count(1))
    _lock: Any = field(default_factory=RLock, compare=False)
    """Threads may share traced rows: an engine has one connection, and what was kept is of one engine."""

    @property
    def engine(self) -> str:
        """The name of the executor that is used."""
        return self.engines[self.current].name

    def keep(self, node: Node) -> Relation:
        """Evaluate a plan once; return a leaf that reads its rows."""
        name = f"{_PREFIX}{next(self._numbers)}"
        self._plans[name] = node
        self._exactly(lambda executor: self._evaluated(executor, name))
        return Relation(0, name, KEPT, (), unique(outputs(node)), Struct(()))

    def fetch(self, node: Node) -> list[tuple[Any, ...]]:
        """The rows of a plan."""
        return self._exactly(lambda executor: executor.fetch(self._translated(executor, node)))

    def arrow(self, node: Node) -> Any:
        """The rows of a plan as a pyarrow table, its moments with their zone."""
        return self._exactly(lambda executor: _zoned(executor, self._translated(executor, node)))

    def kept_rows(self, leaf: Relation) -> int | None:
        """The number of rows of what ``keep`` returned; None where that is not known without another evaluation."""
        if leaf.format != KEPT or not leaf.dataset.startswith(_PREFIX):
            return None

        def counted(executor: Executor) -> int | None:
            known: Callable[[Relation], int | None] | None = getattr(executor, "kept_rows", None)
            return None if known is None else known(self._evaluated(executor, leaf.dataset))

        return self._exactly(counted)

    def frame(self, node: Node, names: Sequence[str]) -> Any:
        """The rows of a plan as the executor's own data frame, else as one of pandas."""

        def made(executor: Executor) -> Any:
            own = self._translated(executor, node)
            make = getattr(executor, "frame", None)
            if make is not None:
                return make(own, names)
            return _zoned(executor, own).rename_columns(list(names)).to_pandas()

        return self._exactly(made)

    def condition(self, text: str, columns: Sequence[Attribute]) -> Expression | None:
        """A boolean expression over columns, read by an engine with a parser of its own; None where there is none.

        Raises:
            UsageError: The expression is mistaken, or has a part that is not evaluated again.
        """
        key = (text, tuple(column.id for column in columns))
        with self._lock:
            if key not in self._conditions:
                self._conditions[key] = self._read(text, columns)
            return self._conditions[key]

    def _read(self, text: str, columns: Sequence[Attribute]) -> Expression | None:
        for number, engine in enumerate(self.engines):
            if engine.name != _PARSER:
                continue
            try:
                is_used = number == self.current and self._started is not None
                executor: Any = self._started if is_used else engine.start()
                found: Expression = executor.condition(text, columns)
            except NotExact as error:
                raise UsageError(
                    f"the expression cannot be evaluated as Spark does: {error}", code="usage.sql-unsupported"
                ) from error
            except EngineError:
                return None  # without Spark
            return found
        return None

    def _exactly(self, work: Callable[[Executor], _T]) -> _T:
        with self._lock:
            while True:
                try:
                    return work(self._executor())
                except NotExact as refusal:
                    self._give_up(str(refusal))

    def _executor(self) -> Executor:
        if self._started is None:
            try:
                self._started = self.engines[self.current].start()
            except EngineError as error:
                raise self._failed(error) from error
        return self._started

    def _give_up(self, why: str) -> None:
        self.refusals.append((self.engine, why))
        if self.current + 1 == len(self.engines):
            raise self._failed(None)
        self.current += 1
        self._started = None
        self._kept.clear()

    def _failed(self, error: EngineError | None) -> EngineError:
        """What is wrong where the last engine was given up.

        Raises:
            EvidenceError: A file cannot be read by any (``evidence.damaged``).
        """
        if any(why.startswith(_FAILURES) for _, why in self.refusals):
            self._files.refuse_damaged()
        engines: dict[str, dict[str, None]] = {}
        for name, why in self.refusals:
            engines.setdefault(why, {})[name] = None
        reasons = "; ".join(
            f"{' and '.join(names)} {'does' if len(names) == 1 else 'do'} not evaluate it exactly: {why}"
            for why, names in engines.items()
        )
        if error is None:
            return EngineError(f"the plan cannot be evaluated: {reasons}", code="engine.not-exact")
        before = f"{reasons}; " if reasons else ""
        return EngineError(f"{before}{error.message}", code=error.code, hint=error.hint)

    def _translated(self, executor: Executor, node: Node) -> Node:
        """A plan with the executor's own leaves for what is kept."""

        def own(leaf: Relation) -> Relation:
            if leaf.format != KEPT or not leaf.dataset.startswith(_PREFIX):
                self._files.check(leaf)
                return leaf
            return replace(leaf, dataset=self._evaluated(executor, leaf.dataset).dataset)

        return with_relations(node, own)

    def _evaluated(self, executor: Executor, name: str) -> Relation:
        if name not in self._kept:
            self._kept[name] = executor.keep(self._translated(executor, self._plans[name]))
        return self._kept[name]


def _zoned(executor: Executor, node: Node) -> Any:
    """The rows of a plan that an executor evaluates; one may give moments without a zone."""
    return zoned_table(executor.arrow(node), [column.type for column in outputs(node)])
