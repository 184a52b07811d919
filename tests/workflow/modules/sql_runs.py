"""Random workflow runs without Spark: modules are random SQL, what they write is what the plain-Python reference gives.

Twice over: A reads inputs and state, what it makes is an input of B, which reads the same inputs and state, of Nest, which
collects bags, and of Flat, which takes bags apart. A module with the name ``COUNT`` hands on the bags, by no known plan.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from reference.algebra import (
    Aggregate,
    Call,
    Col,
    Data,
    Distinct,
    Filter,
    Lit,
    Op,
    Project,
    Scan,
    bag,
    without,
)
from reference.generate import RELATIONS, Plans, Sql, Typed, random_data

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
ARROW = {t.INTEGER: pa.int32(), t.LONG: pa.int64(), t.STRING: pa.string()}
KINDS = {"int": t.INTEGER, "str": t.STRING, "list": t.Array(t.INTEGER)}
MADE = (("a", "int"), ("b", "int"))


class _Later(Plans):
    """Plans over what another module made, and one relation beside."""

    def _scan(self, outer: tuple[str, ...]) -> Typed:
        if self.rng.random() < 0.3:
            return super()._scan(outer)
        return Typed(Scan("made", ("a", "b")), ("int", "int"))


def having(rng: Random) -> Any:
    """Keys of groups whose aggregates compare in a random way; a key may come of several groups."""
    grouped = Aggregate(
        Scan("r", ("id", "k", "x", "g")), (1, 3), (Call(rng.choice(("SUM", "MAX")), Col(2)), Call("COUNT", None))
    )
    side = Op(rng.choice("+-"), (Col(3), Lit(rng.choice((1, 2)))))
    sides = (Col(2), side) if rng.random() < 0.5 else (side, Col(2))
    kept = Filter(grouped, Op(rng.choice(("<", "<=", ">", ">=", "=", "<>")), sides))
    key = Distinct(Project(kept, (Col(0),)))
    return Project(key, (Col(0), Op("+", (Col(0), Lit(1)))))


def two_columns(plans: Plans, rng: Random) -> Any:
    """A random plan of two columns, one of them computed."""
    while True:
        if rng.random() < 0.25:
            return having(rng)
        found = plans.plan(rng.randint(1, 3))
        numbers = [at for at, kind in enumerate(found.kinds) if kind == "int"]
        if numbers:
            first, second = rng.choice(numbers), rng.choice(numbers[-2:])
            return Project(found.plan, (Col(first), Op(rng.choice("++-*"), (Col(second), Lit(rng.choice((1, 2)))))))


@dataclass
class SqlRun:
    """A run in a folder; also its ``RunFiles``."""

    seed: int
    folder: Path
    relations: dict[str, BoundaryRelation] = field(default_factory=dict)
    tables: dict[str, RelationRows] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    invocations: list[ModuleInvocation] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = Random(self.seed)
        self.first = two_columns(Plans(rng), rng)
        self.second = two_columns(_Later(rng), rng)
        self.data = [random_data(Random(self.seed * 7 + n)) for n in range(2)]
        self.data[1]["s"] = self.data[0]["s"]  # state
        for n, data in enumerate(self.data, 1):
            self._execution(n, data)
        self.run = WorkflowRun(
            "r", "w", "complete", "records", (), "", "", "", (), tuple(self.invocations), self.relations, 2
        )  # fmt: skip

    def graph(self) -> RunGraph:
        """Its provenance graph."""
        return build_run_graph(self.run, self)

    def rerun(self, gone: set[str]) -> Counter[Any]:
        """Relation, execution and row of what both executions put out without some tokens, by the reference."""
        found: Counter[Any] = Counter()
        for n, data in enumerate(self.data, 1):
            own = {tok for name, rows in data.items() for tok, _ in rows if self.token(n, name, tok) in gone}
            left = without(data, own)
            made = self.computed(left)
            found.update((name, n, tuple(row)) for name in ("Out", "Flat") for row in made[name])
        return found

    def computed(self, data: Data) -> dict[str, list[tuple[Any, ...]]]:
        """What the modules of an execution make of some data, in plain Python."""
        made = bag(self.first, data)
        later = {**data, "made": [(str(n), row) for n, row in enumerate(made)]}
        nested: dict[Any, list[Any]] = {}
        for a, b in made:
            nested.setdefault(a, []).extend([] if b is None else [b])
        flat = [(a, b + 1) for a, bag_ in nested.items() for b in bag_]
        return {"made": made, "Out": bag(self.second, later), "Bags": list(nested.items()), "Flat": flat}

    @staticmethod
    def token(execution: int, name: str, token: str) -> str:
        """The id of a record; state is that of the first execution."""
        return f"{1 if name == 's' else execution}:{token}"

    def _execution(self, n: int, data: Data) -> None:
        for name, columns in RELATIONS.items():
            if name != "s" or n == 1:
                tokens = [self.token(n, name, tok) for tok, _ in data[name]]
                kinds = {column: KINDS[kind] for column, kind in columns}
                self._written(self._path(n, name), kinds, [values for _, values in data[name]], tokens)
        made = self.computed(data)
        first = self._made(n, "made", ("a", "b"), Sql().text(self.first), made["made"])
        second = self._made(n, "Out", ("c", "d"), Sql().text(self.second), made["Out"])
        text = "SELECT a, collect_list(b) AS bs FROM made GROUP BY a"
        bags = self._made(n, "Bags", ("a", "bs"), text, made["Bags"])
        flat = self._made(
            n, "Flat", ("a", "e"), f"SELECT a, e + 1 AS e FROM ({text}) LATERAL VIEW EXPLODE(bs) w AS e", made["Flat"]
        )
        same = self._made(n, "Same", ("a", "bs"), "SELECT a, bs FROM Bags", made["Bags"])
        del self.plans[same]
        given = tuple((name, self._path(n, name), "") for name in ("r", "t"))
        state = (("s", "A.s", self._path(n, "s")),)
        for node, inputs, output in (
            ("A", given, first),
            ("B", ((*given, ("made", first, "A"))), second),
            ("Nest", (("made", first, "A"),), bags),
            ("Flat", (("made", first, "A"),), flat),
            ("COUNT", (("Bags", bags, "Nest"),), same),
        ):
            name = output.rpartition("/")[2].partition(".")[0]
            self.invocations.append(
                ModuleInvocation(
                    n, node, node, n, inputs, state if node in "AB" else (), (), ((name, output),),
                    (name,) if name in ("Out", "Flat", "Same") else (),
                )
            )  # fmt: skip

    def _path(self, n: int, name: str) -> str:
        return str(self.folder / str(1 if name == "s" else n) / f"{name}.parquet")

    def _made(self, n: int, name: str, columns: tuple[str, str], text: str, rows: list[Any]) -> str:
        path = self._path(n, name)
        catalog = {
            known.lower(): file_leaf(self.relations[self._path(n, known)], Ids(count(1)))
            for known in (*RELATIONS, "made", "Bags")
            if self._path(n, known) in self.relations
        }
        plan = from_sql(text, catalog)
        kinds = dict(zip(columns, (each.type for each in outputs(plan)), strict=True))
        self._written(path, kinds, rows, [])
        self.plans[path] = Plan(Write(plan, path, "parquet", "overwrite", columns), SESSION)
        return path

    def _written(self, path: str, kinds: dict[str, t.Type], rows: list[Any], tokens: list[str]) -> None:
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        cells = {c: pa.array([row[at] for row in rows], arrow(kind)) for at, (c, kind) in enumerate(kinds.items())}
        pq.write_table(pa.table(cells), file)
        schema = t.Struct(tuple(t.Field(column, kind) for column, kind in kinds.items()))
        stat = file.stat()
        listed = (RelationFile(file.as_uri(), stat.st_size, stat.st_mtime_ns // 1_000_000),)
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


def arrow(kind: t.Type) -> pa.DataType:
    """The Arrow type of a column."""
    return pa.list_(arrow(kind.element)) if isinstance(kind, t.Array) else ARROW[kind]
