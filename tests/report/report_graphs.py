"""Graphs for the tests of the report: random ones with everything that a walk meets, and SQL by file name."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import govtool
from govtool.answers.labels import Owners
from govtool.app.report.graph import ViewBuilder, ViewLabels
from govtool.app.versions.index import index_of
from govtool.graph.index import Index
from govtool.model import ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.report.model import LineageView

SHOP = Path(govtool.__file__).parents[1] / "fixtures" / "shop"
DATASETS = ("a", "b", "c", "d", "e", "t1", "t2")
PATHS = ("x", "y", "s", "s.f", "s.f.g", "s.h")
TO_ROWS = (EdgeKind.JOIN, EdgeKind.FILTER, EdgeKind.DISTINCT, EdgeKind.UNION_ALL, EdgeKind.GROUP_BY)
TO_COLUMN = (EdgeKind.IDENTITY, EdgeKind.TRANSFORMATION, EdgeKind.AGGREGATION, EdgeKind.CONDITIONAL, EdgeKind.WINDOW)


@dataclass
class Opened:
    """A folder of SQL and a store."""

    folder: Path

    def __call__(self, files: dict[str, str], **options) -> govtool.Graph:
        """The graph after another ingest, which replaces the last."""
        sql = self.folder / "sql"
        shutil.rmtree(sql, ignore_errors=True)
        for name, text in files.items():
            (sql / name).parent.mkdir(parents=True, exist_ok=True)
            (sql / name).write_text(text, encoding="utf-8")
        govtool.ingest_sql(sql, store=str(self.folder / "store"), dialect="postgres", **options)
        return govtool.open(str(self.folder / "store"))


def random_derivations(seed: int) -> list[Derivation]:
    """Derivations with cycles, structs, temporary datasets, stars, opaque edges, and edges out of row sets."""
    chance = random.Random(seed)
    return [_derivation(chance, number) for number in range(chance.randint(1, 9))]


def _derivation(chance: random.Random, number: int) -> Derivation:
    target = chance.choice(DATASETS)
    temporary = target.startswith("t")
    columns = tuple(OutputColumn(path) for path in chance.sample(PATHS, chance.randint(0, 4)))
    return Derivation(
        target,
        "temporary" if temporary else "view",
        "replace" if temporary else chance.choice(["replace", "append", "update", "append"]),
        Statement("f", "create_view", "postgres", f"{number}.sql", 1),
        columns,
        edges=tuple(_edge(chance) for _ in range(chance.randint(0, 5))),
    )


def _edge(chance: random.Random) -> Edge:
    source, path, shape = chance.choice(DATASETS), chance.choice(PATHS), chance.randint(0, 9)
    star = chance.random() < 0.3
    if shape == 0:
        return Edge(ColumnRef(source, "*"), "*", EdgeKind.READ)
    if shape == 1:
        start, end = chance.choice([("*", "*"), (path, "*"), ("*", "x"), (path, "y")])
        return Edge(ColumnRef(source, start), end, EdgeKind.OPAQUE, reason="opaque")
    if shape == 2:
        return Edge(
            ColumnRef(source, chance.choice(["*", path])), chance.choice(["*", "x"]), EdgeKind.IDENTITY, star=True
        )
    if shape < 5:
        return Edge(ColumnRef(source, path), "*", chance.choice(TO_ROWS), star=star)
    return Edge(ColumnRef(source, path), chance.choice(PATHS), chance.choice(TO_COLUMN), star=star)


class _NothingKnown(ViewLabels):
    """Neither classes nor zones nor owners."""

    def __init__(self, index: Index) -> None:
        self._index, self.labels, self._places = index, Owners({}), None


def indexed(derivations: list[Derivation]) -> Index:
    """The index of derivations."""
    return index_of(derivations)


def view_of(index: Index) -> LineageView:
    """The view of a whole index."""
    return ViewBuilder(index, range(index.dataset_count), _NothingKnown(index)).build()
