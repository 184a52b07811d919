"""Runs of modules that are SQL texts: their graphs, and what DuckDB itself gives for the same texts without records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from govtool.model.workflow_run import BoundaryRelation, ModuleInvocation, RelationFile, WorkflowRun
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan import types as t
from govtool.records.plan.from_sql import from_sql
from govtool.records.plan.nodes import Plan, Relation, Session, Write, outputs
from govtool.records.trace.normal import Ids
from govtool.workflow.annotate.tables import Executor
from govtool.workflow.modules.circuit_leaves import file_leaf
from govtool.workflow.modules.run_graph import build_run_graph
from govtool.workflow.modules.run_tuples import RelationRows, RunGraph

SESSION = Session("4.0", ansi=True, zone="UTC")
ARROW = {t.INTEGER: pa.int32(), t.LONG: pa.int64(), t.STRING: pa.string(), t.DOUBLE: pa.float64()}
COLUMNS = {"g": t.STRING, "x": t.INTEGER}
"""Those of every relation of records."""
Records = Mapping[str, Sequence[tuple[Any, ...]]]


@dataclass
class SqlModules:
    """A run of one execution; also its ``RunFiles``.

    Args:
        folder: Where its files are put.
        records: The rows of each relation that goes in. The record of row 2 of ``r`` is ``r2``; no name begins another.
        queries: What each module makes, and its query over the records and over what modules before it made. A name
            that begins with ``state`` is state that is left there, and read by what comes later.
        opaque: What has no known plan.
    """

    folder: Path
    records: Records
    queries: Mapping[str, str]
    opaque: frozenset[str] = frozenset()
    relations: dict[str, BoundaryRelation] = field(default_factory=dict)
    tables: dict[str, RelationRows] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        made = self.computed(())
        for name, rows in self.records.items():
            self._written(name, COLUMNS, rows, [f"{name}{at}" for at in range(len(rows))])
        invocations = []
        for name, text in self.queries.items():
            known = list(self.relations)
            catalog = {Path(path).stem: file_leaf(self.relations[path], Ids(count(1))) for path in known}
            plan = from_sql(text, catalog)
            kinds = {each.name: each.type for each in outputs(plan)}
            self._written(name, kinds, made[name], [])
            if name not in self.opaque:
                own = self.path(name)
                self.plans[own] = Plan(Write(plan, own, "parquet", "overwrite", tuple(kinds)), SESSION)
            invocations.append(self._invocation(name, [Path(path).stem for path in known]))
        self.run = WorkflowRun(
            "r", "w", "complete", "records", (), "", "", "", (), tuple(invocations), self.relations, 1
        )  # fmt: skip

    def _invocation(self, name: str, known: list[str]) -> ModuleInvocation:
        slots = [(each, f"X.{each}", self.path(each)) for each in known if each.startswith("state")]
        inputs = [
            (each, self.path(each), "" if each in self.records else f"n_{each}")
            for each in known
            if not each.startswith("state")
        ]
        is_state = name.startswith("state")
        left = ((name, f"X.{name}", self.path(name)),) if is_state else ()
        made = () if is_state else ((name, self.path(name)),)
        return ModuleInvocation(
            1, f"n_{name}", f"M_{name}", 1, tuple(inputs), tuple(slots), left, made, () if is_state else (name,)
        )  # fmt: skip

    def path(self, name: str) -> str:
        """The file of a relation."""
        return str(self.folder / f"{name}.parquet")

    def graph(self) -> RunGraph:
        """Its provenance graph."""
        return build_run_graph(self.run, self)

    @property
    def tokens(self) -> list[str]:
        """All records."""
        return [f"{name}{at}" for name, rows in self.records.items() for at in range(len(rows))]

    def computed(self, gone: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
        """What the modules make without some records, as DuckDB reads their queries."""
        for name in self.records:
            places = [token.removeprefix(name) for token in gone if token.startswith(name)]
            left = f"WHERE place NOT IN ({', '.join(places)})" if places else ""
            self._base.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT g, x FROM given_{name} {left}")
        made = {}
        for name, text in self.queries.items():
            text = text.replace("LEFT ANTI", "ANTI")  # as DuckDB has it
            self._base.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {text}")
            made[name] = self._base.execute(f"SELECT * FROM {name}").fetchall()
        return made

    @cached_property
    def _base(self) -> Any:
        base = duckdb.connect(config={"threads": 1})
        for name, rows in self.records.items():
            arrays = [pa.array([row[at] for row in rows], ARROW[kind]) for at, kind in enumerate(COLUMNS.values())]
            table = pa.table([*arrays, pa.array(range(len(rows)))], names=[*COLUMNS, "place"])
            base.register("arrays", table)
            base.execute(f"CREATE TABLE given_{name} AS SELECT * FROM arrays")
            base.unregister("arrays")
        return base

    def without(self, gone: Sequence[str]) -> dict[str, Counter[tuple[Any, ...]]]:
        """What the modules make without some records, each row as often as it is there."""
        return {name: Counter(rows) for name, rows in self.computed(gone).items()}

    def _written(
        self, name: str, kinds: Mapping[str, t.Type], rows: Sequence[tuple[Any, ...]], tokens: list[str]
    ) -> None:
        file = Path(self.path(name))
        cells = {c: pa.array([row[at] for row in rows], ARROW[kind]) for at, (c, kind) in enumerate(kinds.items())}
        pq.write_table(pa.table(cells), file)
        schema = t.Struct(tuple(t.Field(column, kind) for column, kind in kinds.items()))
        stat = file.stat()
        listed = (RelationFile(file.as_uri(), stat.st_size, stat.st_mtime_ns // 1_000_000),)
        path = str(file)
        self.relations[path] = BoundaryRelation(path, "parquet", json.dumps(t.to_json(schema)), listed)
        self.tables[path] = RelationRows(tuple(kinds), [tuple(row) for row in rows], (len(rows),), tokens)

    # ---- RunFiles ---------------------------------------------------------------------------------------------------

    def plan(self, path: str) -> Plan | None:
        """See ``RunFiles``."""
        return self.plans.get(path)

    def reason(self, path: str) -> str:
        """See ``RunFiles``."""
        return "no plan"

    def rows(self, relation: BoundaryRelation) -> RelationRows:
        """See ``RunFiles``."""
        return self.tables[relation.path]

    def leaf(self, relation: BoundaryRelation, ids: Ids) -> Relation:
        """See ``RunFiles``."""
        return file_leaf(relation, ids)

    def executors(self, plan: Plan) -> Iterator[Executor]:
        """See ``RunFiles``."""
        yield DuckExecutor(plan.session, threads=1)
