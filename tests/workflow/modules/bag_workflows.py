"""Random workflows over bags, captured in Spark; deletions compared with the same functions called anew in plain Spark.

Bags, lists and bags of bags pass from module to module and are kept as state; functions over them (``transform``,
``filter``, ``aggregate``, ``exists`` …) make values, conditions, keys and rows. What runs anew is not the product: the
functions are called in order, over files without the records, and what they make is collected between them.

python tests/workflow/modules/bag_workflows.py 60 [first seed] [--wide]

``--wide``: two modules, of which one applies many functions to the bags of the other.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    here = Path(__file__).parent
    sys.path[:0] = [str(each) for each in (here.parents[1], here, here.parent / "graph", here.parent / "annotate")]

from random_workflows import contradictions
from spark_workflows import input_records, session, store, write

import govtool
from govtool.store import Store

ROW = "struct<id:bigint,x:bigint,g:string>"
SCHEMAS = {
    "plain": "id bigint, x bigint, g string",
    "bags": f"g string, l array<{ROW}>, r array<{ROW}>",
    "lists": "g string, xs array<bigint>",
    "nested": f"n bigint, gs array<struct<n:bigint,g:string,l:array<{ROW}>,r:array<{ROW}>>>",
}
"""The relations that modules pass to each other, by kind."""


@dataclass(frozen=True)
class Way:
    """How one relation is made of others.

    Attributes:
        name: What a report calls it.
        of: The kinds of what it is made of.
        to: The kind of what it makes.
        make: Makes it of DataFrames, given a small number and the functions of Spark.
    """

    name: str
    of: tuple[str, ...]
    to: str
    make: Callable[..., Any]


def _as(kind: str, frame: Any) -> Any:
    """A frame with exactly the types of a kind."""
    from pyspark.sql.types import StructType

    fields = StructType.fromDDL(SCHEMAS[kind]).fields
    return frame.select(
        *(
            frame[field.name]
            if dict(frame.dtypes)[field.name] == field.dataType.simpleString()
            else frame[field.name].cast(field.dataType).alias(field.name)
            for field in fields
        )
    )


def _flat(frame: Any, bag: str, outer: bool = False) -> Any:
    return govtool.workflow.flatten(frame.select(bag), bag, outer=outer)


def _struct(f: Any, e: Any, n: int) -> Any:
    return f.struct(e["id"].alias("id"), (e["x"] + n).alias("x"), e["g"].alias("g"))


def _grouped(f: Any, frame: Any, left: Any, right: Any) -> Any:
    return frame.groupBy("g").agg(left.alias("l"), right.alias("r"))


def _rows(f: Any) -> Any:
    return f.struct("id", "x", "g")


def _numbers(f: Any, frame: Any, number: Any, value: Any) -> Any:
    return frame.select(number.cast("bigint").alias("id"), value.cast("bigint").alias("x"), "g")


def _ways(of: tuple[str, ...], to: str, **made: Callable[..., Any]) -> list[Way]:
    return [Way(name.replace("_", " "), of, to, make) for name, make in made.items()]


WAYS = [
    *_ways(
        ("plain",), "plain",
        where=lambda f, n, a: a.where(f.col("x") > n),
        sums=lambda f, n, a: a.groupBy("g").agg(f.max("id").alias("id"), f.sum("x").alias("x")),
        unique=lambda f, n, a: a.distinct(),
        shifted=lambda f, n, a: a.select("id", (f.col("x") + n).alias("x"), "g"),
    ),
    *_ways(
        ("plain", "plain"), "plain",
        union=lambda f, n, a, b: a.unionAll(b),
        join=lambda f, n, a, b: a.alias("a").join(b.alias("b"), f.col("a.g") == f.col("b.g")).select("a.id", "b.x", "a.g"),
        anti=lambda f, n, a, b: a.join(b.select("g"), "g", "left_anti").select("id", "x", "g"),
    ),
    *_ways(
        ("plain", "plain"), "bags",
        cogroup=lambda f, n, a, b: govtool.workflow.cogroup(a, b, by="g", names=["l", "r"]),
    ),
    *_ways(
        ("plain",), "bags",
        group=lambda f, n, a: _grouped(f, a, f.collect_list(_rows(f)), f.collect_list(f.when(f.col("x") > n, _rows(f)))),
        group_sets=lambda f, n, a: _grouped(f, a, f.sort_array(f.collect_set(_rows(f))), f.collect_set(_rows(f))),
    ),
    *_ways(
        ("plain",), "lists",
        lists=lambda f, n, a: a.groupBy("g").agg(f.collect_list("x").alias("xs")),
        sets=lambda f, n, a: a.groupBy("g").agg(f.collect_set("x").alias("xs")),
        sorted_lists=lambda f, n, a: a.groupBy("g").agg(f.sort_array(f.collect_list("x"), n > 1).alias("xs")),
        one_list=lambda f, n, a: a.agg(f.collect_list("x").alias("xs")).select(f.lit("a").alias("g"), "xs"),
        lists_above=lambda f, n, a: a.groupBy("g").agg(f.expr(f"collect_list(x) filter (where x > {n})").alias("xs")),
    ),
    *_ways(
        ("bags",), "plain",
        flatten_l=lambda f, n, a: _flat(a, "l"),
        flatten_r=lambda f, n, a: _flat(a, "r"),
        flatten_outer=lambda f, n, a: _flat(a, "l", True),
        pairs=lambda f, n, a: govtool.workflow.flatten(
            govtool.workflow.flatten(a.select("l", "r"), "l").select(f.col("id").alias("own"), "r"), "r"
        ).select(f.col("own").alias("id"), "x", "g"),
        flatten_large=lambda f, n, a: _flat(a.where(f.size("l") > n), "l"),
        flatten_filtered=lambda f, n, a: _flat(a.select(f.filter("l", lambda e: e["x"] > n).alias("l")), "l"),
        flatten_made=lambda f, n, a: _flat(a.select(f.transform("l", lambda e: _struct(f, e, n)).alias("l")), "l"),
        flatten_both=lambda f, n, a: _flat(a.select(f.concat("l", "r").alias("l")), "l"),
        inline=lambda f, n, a: a.select(f.inline("l")),
        sizes=lambda f, n, a: _numbers(f, a, f.size("l"), f.size("r")),
        sums_of_bags=lambda f, n, a: _numbers(
            f, a, f.size("l"), f.aggregate("l", f.lit(0).cast("bigint"), lambda s, e: s + f.coalesce(e["x"], f.lit(0)))
        ),
        filtered_sizes=lambda f, n, a: _numbers(f, a, f.size(f.filter("l", lambda e: e["x"] > n)), f.size("r")),
        exists=lambda f, n, a: _numbers(
            f, a, f.exists("l", lambda e: e["x"] == n).cast("int"), f.forall("r", lambda e: e["id"] >= 0).cast("int")
        ),
        where_exists=lambda f, n, a: _numbers(f, a.where(f.exists("l", lambda e: e["x"] == n)), f.lit(n), f.size("r")),
        extremes=lambda f, n, a: _numbers(
            f, a, f.array_max(f.transform("l", lambda e: e["x"])), f.array_min(f.transform("r", lambda e: e["id"]))
        ),
        first_of_sorted=lambda f, n, a: _numbers(
            f, a, f.try_element_at(f.sort_array("l"), f.lit(1))["id"], f.try_element_at(f.sort_array("r"), f.lit(-1))["x"]
        ),
        explode_field=lambda f, n, a: a.select(f.explode("l.x").alias("x"), "g").select(f.col("x").alias("id"), "x", "g"),
        places=lambda f, n, a: a.select(f.posexplode(f.sort_array("l")).alias("p", "e"), "g").select(
            f.col("p").cast("bigint").alias("id"), "e.x", "g"
        ),
        by_size=lambda f, n, a: a.groupBy(f.size("l").cast("bigint").alias("id")).agg(
            f.count("*").alias("x"), f.max("g").alias("g")
        ),
        totals=lambda f, n, a: a.groupBy().agg(
            f.sum(f.size("l")).alias("id"), f.count("*").alias("x"), f.min("g").alias("g")
        ),
        distinct_sizes=lambda f, n, a: a.select(
            f.size(f.array_distinct(f.transform("l", lambda e: e["x"]))).cast("bigint").alias("id"),
            f.size(f.array_union("l", "r")).cast("bigint").alias("x"), "g",
        ),
        overlap=lambda f, n, a: a.where(f.arrays_overlap(f.col("l.x"), f.col("r.x"))).select(
            f.size("l").cast("bigint").alias("id"), f.lit(n).cast("bigint").alias("x"), "g"
        ),
    ),
    *_ways(
        ("bags", "plain"), "plain",
        join_sizes=lambda f, n, a, b: b.join(a.select(f.size("l").cast("bigint").alias("x"), f.col("g").alias("h")), "x").select(
            "id", "x", f.col("h").alias("g")
        ),
        contained=lambda f, n, a, b: b.alias("b").join(a.select("g", "l").alias("a"), f.col("a.g") == f.col("b.g")).where(
            f.array_contains(f.col("a.l.x"), f.col("b.x"))
        ).select("b.id", "b.x", "b.g"),
    ),
    *_ways(
        ("bags",), "bags",
        large=lambda f, n, a: a.where(f.size("l") >= n),
        filter=lambda f, n, a: a.select("g", f.filter("l", lambda e: e["x"] > n).alias("l"), "r"),
        transform=lambda f, n, a: a.select("g", f.transform("l", lambda e: _struct(f, e, n)).alias("l"), "r"),
        concat=lambda f, n, a: a.select("g", f.concat("l", "r").alias("l"), "r"),
        either=lambda f, n, a: a.select("g", f.when(f.size("l") > n, f.col("l")).otherwise(f.col("r")).alias("l"), "r"),
        sorted=lambda f, n, a: a.select("g", f.sort_array("l").alias("l"), f.sort_array("r", False).alias("r")),
        sorted_distinct=lambda f, n, a: a.select("g", f.sort_array("l").alias("l"), f.sort_array("r").alias("r")).distinct(),
        except_=lambda f, n, a: a.select("g", f.array_except("l", "r").alias("l"), f.array_intersect("l", "r").alias("r")),
        first_ones=lambda f, n, a: a.select("g", f.slice(f.sort_array("l"), 1, n).alias("l"), "r"),
        swapped=lambda f, n, a: a.select("g", f.col("r").alias("l"), f.col("l").alias("r")),
    ),
    *_ways(("bags", "bags"), "bags", bags_union=lambda f, n, a, b: a.unionAll(b)),
    *_ways(
        ("bags",), "lists",
        field=lambda f, n, a: a.select("g", f.col("l.x").alias("xs")),
        transformed=lambda f, n, a: a.select("g", f.transform("l", lambda e: e["x"] * n + e["id"]).alias("xs")),
        ordered=lambda f, n, a: a.select("g", f.array_sort(f.transform("l", lambda e: e["x"])).alias("xs")),
        lists_of_sizes=lambda f, n, a: a.groupBy("g").agg(f.collect_list(f.size("l").cast("bigint")).alias("xs")),
    ),
    *_ways(
        ("lists",), "plain",
        list_sizes=lambda f, n, a: _numbers(f, a, f.size("xs"), f.array_max("xs")),
        explode=lambda f, n, a: a.select(f.explode("xs").alias("id"), f.lit(n).cast("bigint").alias("x"), "g"),
        explode_outer=lambda f, n, a: a.select(f.explode_outer("xs").alias("id"), f.lit(n).cast("bigint").alias("x"), "g"),
        first=lambda f, n, a: _numbers(f, a, f.try_element_at("xs", f.lit(1)), f.size("xs")),
        positions=lambda f, n, a: _numbers(f, a, f.array_max(f.transform("xs", lambda e, i: e * i)), f.lit(n)),
        folded=lambda f, n, a: _numbers(
            f, a, f.aggregate("xs", f.lit(0).cast("bigint"), lambda s, e: s * 2 + f.coalesce(e, f.lit(0))), f.size("xs")
        ),
        where_first=lambda f, n, a: _numbers(f, a.where(f.try_element_at("xs", f.lit(1)) > n), f.size("xs"), f.lit(n)),
        texts=lambda f, n, a: a.select(
            f.lit(n).cast("bigint").alias("id"), f.size("xs").cast("bigint").alias("x"), f.array_join("xs", ",").alias("g")
        ),
        contains=lambda f, n, a: _numbers(f, a, f.array_contains("xs", n).cast("int"), f.size("xs")),
        where_contains=lambda f, n, a: _numbers(f, a.where(f.array_contains("xs", n)), f.size("xs"), f.lit(n)),
        list_sums=lambda f, n, a: _numbers(
            f, a, f.aggregate("xs", f.lit(0).cast("bigint"), lambda s, e: s + e), f.size(f.filter("xs", lambda e: e > n))
        ),
        by_list=lambda f, n, a: a.groupBy(f.sort_array("xs").alias("s")).agg(
            f.count("*").alias("id"), f.max("g").alias("g")
        ).select("id", f.size("s").cast("bigint").alias("x"), "g"),
        same_lists=lambda f, n, a: a.alias("a").join(
            a.select(f.col("g").alias("h"), f.sort_array("xs").alias("s")), f.sort_array(f.col("a.xs")) == f.col("s")
        ).select(f.size("s").cast("bigint").alias("id"), f.lit(n).cast("bigint").alias("x"), f.col("h").alias("g")),
    ),
    *_ways(
        ("lists",), "lists",
        list_filter=lambda f, n, a: a.select("g", f.filter("xs", lambda e: e > n).alias("xs")),
        list_distinct=lambda f, n, a: a.select("g", f.array_distinct("xs").alias("xs")),
        list_sorted=lambda f, n, a: a.select("g", f.sort_array("xs", n > 1).alias("xs")),
        lists_regrouped=lambda f, n, a: a.select("g", f.explode("xs").alias("x")).groupBy("g").agg(
            f.collect_list("x").alias("xs")
        ),
        list_of_lists=lambda f, n, a: a.groupBy("g").agg(f.flatten(f.collect_list("xs")).alias("xs")),
    ),
    *_ways(("lists", "lists"), "lists", lists_union=lambda f, n, a, b: a.unionAll(b)),
    *_ways(
        ("bags",), "nested",
        nested=lambda f, n, a: govtool.workflow.cogroup(
            a.select(f.lit(n).cast("bigint").alias("n"), "g", "l", "r"), by="n", names=["gs"]
        ),
        nested_by_size=lambda f, n, a: govtool.workflow.cogroup(
            a.select(f.size("l").cast("bigint").alias("n"), "g", "l", "r"), by="n", names=["gs"]
        ),
    ),
    *_ways(
        ("nested",), "bags",
        inner=lambda f, n, a: govtool.workflow.flatten(a.select("gs"), "gs").select("g", "l", "r"),
        inner_filtered=lambda f, n, a: govtool.workflow.flatten(
            a.select(f.filter("gs", lambda e: f.size(e["l"]) > n).alias("gs")), "gs"
        ).select("g", "l", "r"),
    ),
    *_ways(
        ("nested",), "plain",
        nested_rows=lambda f, n, a: _flat(govtool.workflow.flatten(a.select("gs"), "gs"), "l"),
        nested_sizes=lambda f, n, a: a.select(
            f.aggregate("gs", f.lit(0), lambda s, e: s + f.size(e["l"])).cast("bigint").alias("id"),
            f.size("gs").cast("bigint").alias("x"), f.lit("a").alias("g"),
        ),
        nested_all=lambda f, n, a: _flat(a.select(f.flatten(f.transform("gs", lambda e: e["l"])).alias("l")), "l"),
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A relation of a module: its name, its kind, and how it is made (None: it is received)."""

    name: str
    kind: str
    way: Way | None = None
    of: tuple[str, ...] = ()
    number: int = 1


class Body:
    """What a module does: random steps, the same at each invocation."""

    def __init__(self, rng: random.Random, given: dict[str, str], state: dict[str, str], count: int) -> None:
        self.given, self.state = given, state
        self.steps = [Step(name, kind) for name, kind in {**given, **state}.items()]
        for _ in range(count):
            kinds = {step.kind for step in self.steps}
            ways = [way for way in WAYS if set(way.of) <= kinds]
            fresh = [way for way in ways if not any(step.way is way for step in self.steps)]
            self._add(rng, rng.choice(self._wanted(rng, fresh or ways)))
        self.kept = {}
        for name, kind in state.items():
            own = [step for step in self.steps if step.kind == kind and step.name != name]
            if own and rng.random() < 0.9:
                self.kept[name] = rng.choice(own).name, kind != "nested" and rng.random() < 0.7
        made = [step for step in self.steps if step.way is not None]
        bags = [step for step in made if step.kind != "plain"] or made
        self.outputs = list({step.name: step for step in (made[-1], rng.choice(bags))}.values()) if made else []

    def _wanted(self, rng: random.Random, ways: list[Way]) -> list[Way]:
        bags = [way for way in ways if way.of[0] != "plain" or way.to != "plain"]
        return bags if bags and rng.random() < 0.85 else ways

    def _add(self, rng: random.Random, way: Way) -> None:
        of = tuple(rng.choice([step.name for step in self.steps if step.kind == kind]) for kind in way.of)
        self.steps.append(Step(f"s{len(self.steps)}", way.to, way, of, rng.choice((0, 1, 1, 2))))

    def call(self, frames: dict[str, Any]) -> dict[str, Any]:
        """Every relation of the module."""
        from pyspark.sql import functions as f

        found = dict(frames)
        for step in self.steps:
            if step.way is not None:
                made = step.way.make(f, step.number, *(found[name] for name in step.of))
                found[step.name] = _as(step.kind, made)
        return found

    def results(self, outputs: dict[str, str], frames: dict[str, Any]) -> dict[str, Any]:
        """Outputs by their names, and changed state."""
        found = self.call(frames)
        made = {name: found[step] for name, step in outputs.items()}
        for name, (step, is_added) in self.kept.items():
            made[name] = frames[name].unionAll(found[step]) if is_added else found[step]
        return made

    def __str__(self) -> str:
        steps = "; ".join(
            f"{step.name}={step.way.name}{step.number}({', '.join(step.of)})" for step in self.steps if step.way
        )
        return f"{steps}; keeps {self.kept}"


class Case:
    """A random workflow that ran over random records."""

    def __init__(self, seed: int, folder: Path, spark: Any, wide: bool = False) -> None:
        rng = random.Random(seed)
        self.seed, self.folder, self.spark, self.wide = seed, folder, spark, wide
        self.bodies: dict[str, tuple[Body, dict[str, str], Any]] = {}
        self.edges: list[tuple[str, str, str]] = []
        (self._widest if wide else self._draw)(rng)
        nodes = {node: module for node, (_, _, module) in self.bodies.items()}
        self.keep = {node: list(outputs) for node, (_, outputs, _) in self.bodies.items()}
        self.flow = govtool.Workflow(f"w{seed}", nodes=nodes, edges=self.edges, keep=self.keep)
        self.flow.validated()
        self.executions = 2 if seed % 8 else 3
        for name in ("R", "S"):
            write(rng, folder / "in" / f"{name}.parquet")
            for execution in range(2, self.executions + 1):
                if rng.random() < 0.6:
                    write(rng, folder / "in" / str(execution) / f"{name}.parquet")
        self.store = Store.init(str(folder / "store"))
        answer = govtool.run_workflow(
            self.flow, folder / "in", state=folder / "state", mode="records", executions=self.executions,
            store=self.store.uri, spark=spark,
        )  # fmt: skip
        self.run = answer.run
        self.graph = govtool.open(self.store.uri)

    def _draw(self, rng: random.Random) -> None:
        available: list[tuple[str, str, str]] = []  # node, relation, kind
        for number in range(rng.choice((1, 2, 2, 3))):
            if number == 0:
                given = {"R": "plain", "S": "plain"}
            else:
                chosen = [each for each in available if rng.random() < 0.7] or [rng.choice(available)]
                given = {relation: kind for _, relation, kind in chosen}
                self.edges += [(node, f"n{number}", relation) for node, relation, _ in chosen]
            state = {"K": rng.choice(list(SCHEMAS))} if rng.random() < 0.7 else {}
            body = Body(rng, given, state, rng.randint(2, 4))
            outputs = {f"O{number}_{at}": step for at, step in enumerate(body.outputs)}
            named = {relation: step.name for relation, step in outputs.items()}
            self.bodies[f"n{number}"] = body, named, _module(f"M{number}", body, named)
            available += [(f"n{number}", relation, step.kind) for relation, step in outputs.items()]

    def _widest(self, rng: random.Random) -> None:
        """One module that makes and keeps bags, lists and bags of bags, and one that applies each way to them."""
        made = Body(rng, {"R": "plain", "S": "plain"}, {"K": "bags"}, 0)
        steps = [("cogroup", ("R", "S")), ("lists", ("R",)), ("nested by size", ("K",)), ("bags union", ("K", "s3"))]
        made.steps += [_step(at, name, of) for at, (name, of) in enumerate(steps, 3)]
        made.kept = {"K": ("s3", True)}
        applied = Body(rng, {"B": "bags", "L": "lists", "N": "nested"}, {}, 0)
        given = {"bags": "B", "lists": "L", "nested": "N"}
        ways = [way for way in WAYS if set(way.of) <= set(given)]
        chosen = rng.sample(ways, min(len(ways), 14))
        applied.steps += [
            _step(at, way.name, [given[kind] for kind in way.of], rng.choice((0, 1, 1, 2)))
            for at, way in enumerate(chosen, 3)
        ]
        outputs = {"B": "s6", "L": "s4", "N": "s5"}
        results = {f"W{step.name}": step.name for step in applied.steps[3:]}
        self.bodies["n0"] = made, outputs, _module("M0", made, outputs)
        self.bodies["n1"] = applied, results, _module("M1", applied, results)
        self.edges += [("n0", "n1", name) for name in outputs]

    def by_operator(self, mode: str, name: str, node: str, rows: Any, is_open: bool) -> Counter[str]:
        """Of a wide workflow, the rows, those that are unknown, and answers that are open, of the way of a relation."""
        body, outputs, _ = self.bodies[node] if node else (None, {}, None)
        if not self.wide or body is None or node == "n0":
            return Counter()
        step = next(each for each in body.steps if each.name == outputs[name])
        assert step.way is not None
        what = f"{mode} by {step.way.of[0]} → {step.way.name}"
        unknown = sum(row.status == "unknown" for row in rows)
        return Counter({f"{what}: rows": len(rows), f"{what}: unknown": unknown, f"{what}: open": int(is_open)})

    @cached_property
    def records(self) -> dict[Path, list[tuple[str, tuple[Any, ...]]]]:
        """The records of each file that was read: token and values."""
        return input_records(self.store, self.run, self.folder / "in")

    def relations(self) -> dict[tuple[str, int, str], str]:
        """The versions of outputs and of state that were written, by relation, execution and node."""
        found = {}
        for each in self.run.invocations:
            found.update({(name, each.execution, each.node): path for name, path in each.outputs})
            found.update({(f"{each.module}.{name}", each.execution, ""): path for name, _, path in each.new_state})
        return found

    def anew(self, gone: Any) -> dict[tuple[str, int, str], Counter[Any]]:
        """Every relation, made by calling the functions over files without some records: no workflow, no govtool run."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        for file in sorted((self.folder / "in").rglob("*.parquet")):
            rows = [values for text, values in self.records.get(file, []) if text not in gone]
            store(rows, place / file.relative_to(self.folder))
        states = {
            (node, name): self.spark.createDataFrame([], SCHEMAS[kind])
            for node, (body, _, _) in self.bodies.items()
            for name, kind in body.state.items()
        }
        found: dict[tuple[str, int, str], Counter[Any]] = {}
        for execution in range(1, self.executions + 1):
            made: dict[str, Any] = {}
            for node, (body, outputs, module) in self.bodies.items():
                frames = {}
                for name in body.given:
                    own = place / "in" / str(execution) / f"{name}.parquet"
                    whole = place / "in" / f"{name}.parquet"
                    frames[name] = made.get(name) or self.spark.read.parquet(str(own if own.exists() else whole))
                frames |= {name: states[node, name] for name in body.state}
                results = body.results(outputs, frames)
                for name, frame in results.items():
                    collected = frame.collect()
                    result = self.spark.createDataFrame(collected, frame.schema)
                    rows = Counter(shown(tuple(row)) for row in collected)
                    if name in outputs:
                        made[name] = result
                        found[name, execution, node] = rows
                    else:
                        states[node, name] = result
                        found[f"{module.name}.{name}", execution, ""] = rows
        return found


def _step(at: int, name: str, of: Any, number: int = 1) -> Step:
    way = next(each for each in WAYS if each.name == name)
    return Step(f"s{at}", way.to, way, tuple(of), number)


def _module(name: str, body: Body, outputs: dict[str, str]) -> Any:
    schemas = {relation: SCHEMAS[kind] for relation, kind in body.state.items()}

    @govtool.module(name, list(body.given), schemas, list(outputs))
    def call(*frames: Any) -> dict[str, Any]:
        return body.results(outputs, dict(zip([*body.given, *body.state], frames, strict=True)))

    return call


def shown(value: Any) -> Any:
    """A value whatever made it: bags and lists as their elements in order."""
    if isinstance(value, dict):
        return tuple(map(shown, value.values()))
    if isinstance(value, tuple):  # a row, or a nested one
        return tuple(map(shown, value))
    if isinstance(value, list):
        return "bag", tuple(sorted(map(shown, value), key=repr))
    return value


# ---- comparisons -----------------------------------------------------------------------------------------------------


def problems(case: Case, report: Counter[str], deletions: int = 4) -> list[str]:
    """What the product says otherwise than the functions give anew."""
    wrong = list(_why(case, report)) if case.seed % 4 == 1 else []
    wrong += _deletions(case, report, deletions)
    return [f"seed {case.seed}: {each}" for each in wrong]


def _address(name: str, execution: int, node: str) -> str:
    return f"{node}/{name}@{execution}" if node else f"{name}@{execution}"


def _why(case: Case, report: Counter[str]) -> Any:
    expected = case.anew(())
    relations = list(case.relations())
    for name, execution, node in random.Random(case.seed + 3).sample(relations, min(2, len(relations))):
        address = _address(name, execution, node)
        answer = case.graph.workflow_why(case.run.id, address, semirings=["polynomial", "count", "which"])
        coarse = any("depend on everything" in note for note in answer.notes)
        report["relations coarse" if coarse else "relations annotated"] += 1
        for note in answer.notes:
            if "depend on everything" in note:
                report[f"because {note.rpartition(': ')[2][:90]}"] += 1
        rows: Counter[Any] = Counter()
        for each in answer.tuples:
            rows[shown(each.values)] += each.multiplicity
        if +rows != expected[name, execution, node]:
            yield f"why {address}: {+rows - expected[name, execution, node]} not {expected[name, execution, node] - rows}"


def _deletions(case: Case, report: Counter[str], number: int) -> Any:
    rng = random.Random(case.seed + 7)
    tokens = [token for rows in case.records.values() for token, _ in rows]
    lists = [sorted({token for token in tokens if rng.random() < share}) for share in (0.1, 0.25, 0.5, 0.8)]
    lists = [gone or [rng.choice(tokens)] for gone in lists[:number]] if tokens else []
    if not lists:
        return
    after = [case.anew(gone) for gone in lists]
    relations = case.relations()
    outputs = sorted({_address(*each) for each in relations})
    for mode in ("propagate", "auto") if case.seed % 4 == 0 else ("propagate",):
        answers = case.graph.workflow_deletions(
            case.run.id, lists, mode=mode, outputs=outputs, program=case.flow, spark=case.spark
        )
        for gone, answer, expected in zip(lists, answers, after, strict=True):
            for name, execution, node in relations:
                own = answer.relations[name]
                rows = [
                    row
                    for (at, row), of in zip(own.rows, own.nodes, strict=True)
                    if at == execution and (of == node or not node)
                ]
                gains = [
                    row
                    for row, (at, of) in zip(own.gains, own.gained_by, strict=True)
                    if at == execution and (of == node or not node)
                ]
                report.update(f"{mode} {row.status}" for row in rows)
                report.update(case.by_operator(mode, name, node, rows, own.gains_possible))
                what = f"{mode} without {gone}, {_address(name, execution, node)}"
                yield from contradictions(what, rows, gains, own.gains_possible, expected[name, execution, node], shown)
                is_open = own.gains_possible or any(row.status == "unknown" for row in rows)
                if mode == "auto" and is_open and not answer.not_replayable:
                    yield f"{what}: not decided: {answer.notes}"


def run(seeds: range, spark: Any, wide: bool = False) -> tuple[list[str], Counter[str], int]:
    """The problems of some seeds, the statuses that were compared, and how many workflows ran."""
    report: Counter[str] = Counter()
    wrong: list[str] = []
    cases = 0
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            print(f"seed {seed} …", flush=True)
            case = Case(seed, Path(folder).resolve(), spark, wide)
            try:
                found = problems(case, report)
            except Exception as error:  # the other seeds count, too
                found = [f"seed {seed}: {type(error).__name__} {error}"]
                traceback.print_exc()
            print(f"{time.monotonic() - started:.1f} s")
            if found:
                print(*(f"{node}: {body} -> {outputs}" for node, (body, outputs, _) in case.bodies.items()), sep="\n")
        cases += 1
        print(f"{seed}: {len(found)} wrong", *(each[:1500] for each in found), sep="\n", flush=True)
        wrong += found
        if cases % 10 == 0:
            print(dict(sorted(report.items())), flush=True)
    return wrong, report, cases


def main(arguments: list[str]) -> int:
    wide = "--wide" in arguments
    numbers = [int(each) for each in arguments if each.isdigit()]
    start = numbers[1] if len(numbers) > 1 else 0
    wrong, report, cases = run(range(start, start + numbers[0]), session(), wide)
    print(f"{cases} workflows, {len(wrong)} wrong")
    for name, number in sorted(report.items()):
        print(f"{name}: {number:,}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
