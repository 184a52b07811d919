"""Random workflows over DataFrames, run and captured in Spark, compared with the reference and with runs anew.

Modules are random queries over what they receive and keep, over groups of it (COGROUP) and over what is taken out of
groups again (FLATTEN); bags pass from module to module. Modules are used twice, share state, stand in unfolded loops.
Nodes and edges are declared in any order.

python tests/workflow/modules/spark_workflows.py 100 [first seed]
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    here = Path(__file__).parent
    sys.path[:0] = [str(each) for each in (here.parents[1], here, here.parent / "graph", here.parent / "annotate")]

import pyarrow as pa
import pyarrow.parquet as pq
from random_workflows import COLUMNS, Over, Text, contradictions, graph_problems, looped, random_flow, shares_unknown
from reference import algebra
from reference.algebra import Aggregate, Call, Given, Row
from reference.bags import cogroup, flatten
from reference.generate import counts_rows
from reference.polynomial import Fn, token

import govtool
from govtool.app.workflow_runs.opened import opened_run
from govtool.store import Store

SPARK_TYPES = ("bigint", "bigint", "string")
MODES = ("propagate", "auto", "replay")
KEY = COLUMNS.index("g")
_views = count(1)


# ---- modules as steps ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One named relation of a module: ``received``, a ``query`` over others, ``groups`` of two, or ``taken`` out of groups.

    Attributes:
        name: Its name.
        kind: As above.
        of: The names of the relations that it is made of.
        plan: Of a query, the plan of the reference; of what is taken out, which way.
    """

    name: str
    kind: str
    of: tuple[str, ...] = ()
    plan: Any = None


TAKEN = ("left", "right", "pairs", "sizes", "wide")
"""The rows of one bag; each row of one with each of the other; the sizes of both; a bag beside the group's key."""


class Steps:
    """The steps of a module: drawn once, the same at each invocation."""

    def __init__(self, rng: random.Random, relations: list[str], made: list[str]) -> None:
        self.rng = rng
        self.steps = [Step(f"f{at}", "received") for at in range(len(relations))]
        self.plain = [f"f{at}" for at, name in enumerate(relations) if not is_grouped(name)]
        groups = [f"f{at}" for at, name in enumerate(relations) if is_grouped(name)]
        for name in groups:
            self._take(name)
        if self.plain and rng.random() < 0.5:
            self._take(self._groups())
        self.results = {name: self._groups() if is_grouped(name) else self.query(2) for name in made}

    def query(self, depth: int, before: str | None = None) -> str:
        """A random query over what there is; with ``before``, the rows of that relation besides."""
        relations = [(Given(name, COLUMNS), None) for name in self.plain]
        relations += [(unique(Given(name, COLUMNS)), 0) for name in self.plain]
        while True:
            plan, _ = Over(self.rng, relations).relation(self.rng.randint(1, depth))
            if not counts_rows(plan):  # a row of the reference has to be one row of the file
                break
        if before is not None:
            plan = algebra.Union(Given(before, COLUMNS), plan)
        return self._add("query", (), plan)

    def _groups(self) -> str:
        sides = [self.query(1) if self.rng.random() < 0.5 else self.rng.choice(self.plain) for _ in "lr"]
        return self._add("groups", tuple(sides))

    def _take(self, groups: str) -> None:
        for way in self.rng.sample(TAKEN, self.rng.randint(1, 2)):
            self.plain.append(self._add("taken", (groups,), way))

    def _add(self, kind: str, of: tuple[str, ...], plan: Any = None) -> str:
        self.steps.append(Step(f"s{len(self.steps)}", kind, of, plan))
        return self.steps[-1].name


def unique(plan: Any) -> Any:
    """A relation with one row an id."""
    return Aggregate(plan, (0,), (Call("MAX", algebra.Col(1)), Call("MIN", algebra.Col(2))))


def is_grouped(name: str) -> bool:
    return re.fullmatch(r"N\d+", name) is not None


def in_spark(steps: list[Step], frames: tuple[Any, ...]) -> dict[str, Any]:
    """The relations of a module as DataFrames."""
    found = {f"f{at}": frame for at, frame in enumerate(frames)}
    for step in steps:
        if step.kind == "query":
            found[step.name] = _queried(step.plan, found)
        elif step.kind == "groups":
            left, right = (found[name] for name in step.of)
            found[step.name] = govtool.workflow.cogroup(left, right, by="g", names=["l", "r"])
        elif step.kind == "taken":
            found[step.name] = _taken(found[step.of[0]], step.plan)
    return found


def _queried(plan: Any, found: dict[str, Any]) -> Any:
    names = {name: f"w{next(_views)}" for name in found if found[name].columns == list(COLUMNS)}
    for name, view in names.items():
        found[name].createOrReplaceTempView(view)
    text = Text(names).text(plan)
    made = found["f0"].sparkSession.sql(text)
    kinds = [kind for _, kind in made.dtypes]
    columns = [
        made[at].alias(name) if kind == wanted else made[at].cast(wanted).alias(name)
        for at, (name, kind, wanted) in enumerate(zip(COLUMNS, kinds, SPARK_TYPES, strict=True))
    ]
    for view in names.values():
        made.sparkSession.catalog.dropTempView(view)
    return made.select(*columns)


def _taken(groups: Any, way: str) -> Any:
    from pyspark.sql import functions as f

    from govtool.workflow import flatten as taken_out

    if way == "sizes":
        return groups.select(f.size("l").cast("bigint").alias("id"), f.size("r").cast("bigint").alias("x"), "g")
    if way == "wide":
        rows = taken_out(groups.select(f.col("g").alias("key"), "l"), "l")
        return rows.select("id", "x", f.col("key").alias("g"))
    if way == "pairs":
        rows = taken_out(groups.select("l", "r"), "l").select("r", f.col("id").alias("own"), f.col("g").alias("key"))
        return taken_out(rows, "r").select(f.col("own").alias("id"), "x", f.col("key").alias("g"))
    side = {"left": "l", "right": "r"}[way]
    return taken_out(groups.select(side), side)


def in_reference(steps: list[Step], relations: list[list[Row]]) -> dict[str, list[Row]]:
    """The relations of a module as annotated rows."""
    found = {f"f{at}": rows for at, rows in enumerate(relations)}
    for step in steps:
        if step.kind == "query":
            found[step.name] = algebra.evaluate(step.plan, found)
        elif step.kind == "groups":
            found[step.name] = cogroup([found[name] for name in step.of], KEY)
        elif step.kind == "taken":
            found[step.name] = _taken_rows(found[step.of[0]], step.plan)
    return found


def _taken_rows(groups: list[Row], way: str) -> list[Row]:
    if way == "sizes":
        return [
            Row((*(Fn("SIZE", len, (bag,)) for bag in row.cells[1:]), row.cells[0]), row.annotation) for row in groups
        ]
    if way == "wide":  # id, x and the key of the group
        return [Row((row.cells[2], row.cells[3], row.cells[0]), row.annotation) for row in _flat(groups, 1)]
    if way == "pairs":  # the left's id and group, the right's x
        return [Row((row.cells[1], row.cells[5], row.cells[3]), row.annotation) for row in flatten(_flat(groups, 1), 1)]
    return [Row(row.cells[2:], row.annotation) for row in _flat(groups, {"left": 1, "right": 2}[way])]


def _flat(groups: list[Row], at: int) -> list[Row]:
    """Rows of a bag, after the key and the other bag."""
    return flatten(groups, at)


# ---- a case ----------------------------------------------------------------------------------------------------------


class Case:
    """A random workflow that ran over random records."""

    def __init__(self, seed: int, folder: Path, spark: Any) -> None:
        rng = random.Random(seed)
        self.seed, self.folder, self.spark = seed, folder, spark
        self.steps: dict[str, tuple[Steps, Any]] = {}
        self.parts = looped(rng, self.module) if rng.random() < 0.2 else random_flow(rng, self.module, grouped=True)
        nodes, edges = list(self.parts["nodes"].items()), list(self.parts["edges"])
        rng.shuffle(nodes)
        rng.shuffle(edges)
        self.flow = govtool.Workflow(f"w{seed}", **{**self.parts, "nodes": dict(nodes), "edges": edges})
        schedule = self.flow.validated()
        self.executions = rng.choice((1, 1, 2))
        for name in schedule.inputs:
            write(rng, folder / "in" / f"{name}.parquet")
            if rng.random() < 0.4:
                write(rng, folder / "in" / "2" / f"{name}.parquet")
        for slot in schedule.state:
            write(rng, folder / "in" / "state" / f"{slot}.parquet")
        self.store = Store.init(str(folder / "store"))
        answer = govtool.run_workflow(
            self.flow,
            folder / "in",
            state=folder / "state",
            mode="records",
            executions=self.executions,
            store=self.store.uri,
            spark=spark,
        )
        self.run = answer.run
        self.graph = govtool.open(self.store.uri)

    def module(self, rng: random.Random, name: str, inputs: list[str], state: list[str], outputs: list[str]) -> Any:
        """A module of random steps."""
        steps = Steps(rng, [*inputs, *state], outputs)
        kept = {}
        for at, relation in enumerate(state):
            if rng.random() > 0.2:  # or it stays as it is
                kept[relation] = steps.query(1, f"f{len(inputs) + at}" if rng.random() < 0.5 else None)
        self.steps[name] = steps, {**steps.results, **kept}

        @govtool.module(name, inputs, state, outputs)
        def call(*frames: Any) -> dict[str, Any]:
            found = in_spark(steps.steps, frames)
            return {relation: found[step] for relation, step in self.steps[name][1].items()}

        return call

    @cached_property
    def records(self) -> dict[Path, list[tuple[str, tuple[Any, ...]]]]:
        """The records of each file that was read: token and values."""
        return input_records(self.store, self.run, self.folder / "in")

    @property
    def tokens(self) -> list[str]:
        return [each for rows in self.records.values() for each, _ in rows]

    def reference(self, gone: Any = ()) -> dict[str, list[Row]]:
        """The annotated rows of every relation that was written, by its path, without some records.

        Executions follow Definition 2.3: the order of the run is taken from it, and checked.
        """
        state: dict[str, list[Row]] = {}
        found: dict[str, list[Row]] = {}
        made: dict[tuple[int, str, str], list[Row]] = {}
        numbers: Counter[str] = Counter()
        sources = {(target, relation): source for source, target, relation in self.run.edges}
        for each in self.run.invocations:
            numbers[each.module] += 1
            assert each.number == numbers[each.module]
            inputs = []
            for name, _, source in each.inputs:
                assert sources.get((each.node, name), "") == source
                inputs.append(made[each.execution, source, name] if source else self._given(name, each.execution, gone))
            slots = {name: self._slot(each.module, name) for name, _, _ in each.state}
            for slot in slots.values():
                state.setdefault(slot, self._rows(self.folder / "in" / "state" / f"{slot}.parquet", gone))
            steps, results = self.steps[each.module]
            rows = in_reference(steps.steps, [*inputs, *(state[slot] for slot in slots.values())])
            for name, path in each.outputs:
                made[each.execution, each.node, name] = found[path] = rows[results[name]]
            new = {name: path for name, _, path in each.new_state}
            for name, slot in slots.items():
                if name in results:
                    state[slot] = found[new[name]] = rows[results[name]]
        return found

    def _slot(self, module: str, name: str) -> str:
        return name if module in self.parts["shared"].get(name, ()) else f"{module}.{name}"

    def _given(self, name: str, execution: int, gone: Any) -> list[Row]:
        own = self.folder / "in" / str(execution) / f"{name}.parquet"
        return self._rows(own if own.exists() else self.folder / "in" / f"{name}.parquet", gone)

    def _rows(self, file: Path, gone: Any) -> list[Row]:
        return [Row(values, token(text)) for text, values in self.records[file] if text not in gone]

    def outputs(self) -> dict[tuple[str, int, str], str]:
        """The versions of the outputs, by relation, execution and node."""
        return {
            (name, each.execution, each.node): path
            for each in self.run.invocations
            for name, path in each.outputs
            if name in each.kept
        }

    def anew(self, gone: Any) -> dict[tuple[str, int, str], Counter[Any]]:
        """The outputs of the whole workflow, run untracked over files without some records."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        for file in sorted((self.folder / "in").rglob("*.parquet")):
            known = self.records.get(file, [])
            left = [values for text, values in known if text not in gone] if file in self.records else rows_of(file)
            store(left, place / file.relative_to(self.folder))
        answer = govtool.run_workflow(
            self.flow,
            place / "in",
            state=place / "state",
            mode="untracked",
            executions=self.executions,
            spark=self.spark,
        )
        return {
            (name, each.execution, each.node): bag_of(pq_rows(path))
            for each in answer.run.invocations
            for name, path in each.outputs
            if name in each.kept
        }

    # What ``graph_problems`` asks for.

    @property
    def opened_files(self) -> Any:
        return opened_run(self.store, self.store.head("main"), self.run.id)


def write(rng: random.Random, file: Path) -> None:
    """A file of random records: skewed values, NULLs, rows alike, or none."""
    cell = lambda: None if rng.random() < 0.2 else rng.choice((1, 1, 2, 3))  # noqa: E731
    rows = [(at, cell(), rng.choice(("a", "a", "b", None))) for at in range(rng.randint(0, 4))]
    store([rng.choice(rows[: at + 1]) if rng.random() < 0.2 else row for at, row in enumerate(rows)], file)


def store(rows: list[tuple[Any, ...]], file: Path) -> None:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    kinds = (pa.int64(), pa.int64(), pa.string())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(zip(COLUMNS, arrays, strict=True))), file)


def input_records(store: Store, run: Any, folder: Path) -> dict[Path, list[tuple[str, tuple[Any, ...]]]]:
    """The records of each file of a folder that a run read: token and values."""
    with opened_run(store, store.head("main"), run.id) as opened:
        read = [file for file in sorted(folder.rglob("*.parquet")) if str(file) in run.relations]
        return {
            file: list(zip(opened.files.rows(run.relations[str(file)]).tokens, rows_of(file), strict=True))
            for file in read
        }


def rows_of(file: Path) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in COLUMNS) for row in pq.read_table(file).to_pylist()]


def pq_rows(path: str) -> list[tuple[Any, ...]]:
    parts = sorted(Path(path).glob("*.parquet"))
    return [tuple(row.values()) for part in parts for row in pq.read_table(part).to_pylist()]


def shown(value: Any) -> Any:
    """A value whatever made it: nested rows by their values, in the order of these."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "asDict"):
        return tuple(sorted(map(shown, value), key=str)) if _is_bag(value) else tuple(map(shown, value))
    if isinstance(value, dict):
        return tuple(map(shown, value.values()))
    return tuple(map(shown, value)) if hasattr(value, "asDict") else value


def _is_bag(value: Any) -> bool:
    return all(isinstance(each, (list, tuple, dict)) for each in value)


def row_shown(row: Any) -> tuple[Any, ...]:
    return tuple(map(shown, row))


def bag_of(rows: Any) -> Counter[Any]:
    return Counter(map(row_shown, rows))


def there(rows: list[Row]) -> Counter[Any]:
    """Rows of the reference as often as they are there."""
    return bag_of(row.values for row in rows for _ in range(row.annotation.count()))


# ---- comparisons -----------------------------------------------------------------------------------------------------


def problems(case: Case, report: Counter[str]) -> list[str]:
    """What the product says otherwise than the reference and a run anew."""
    wrong = [*_rows(case), *_annotations(case, report)]
    rng = random.Random(case.seed + 7)
    lists = [sorted({each for each in case.tokens if rng.random() < share}) for share in (0.15, 0.5)]
    lists = [gone for gone in lists if gone]
    wrong += _graph(case, report)
    if lists:
        wrong += _deletions(case, lists, report)
    return [f"seed {case.seed}: {each}" for each in wrong]


def _rows(case: Case) -> Any:
    for path, rows in case.reference().items():
        made = bag_of(pq_rows(path))
        if made != there(rows):
            yield f"{path}: the reference is wrong: {made - there(rows)}, not {there(rows) - made}"


def _annotations(case: Case, report: Counter[str]) -> Any:
    reference = case.reference()
    for (name, execution, node), path in case.outputs().items():
        address = f"{node}/{name}@{execution}"
        answer = case.graph.workflow_why(case.run.id, address, semirings=["polynomial", "count"])
        if any("depend on everything" in note or note.partition(": ")[2] for note in answer.notes):
            report["coarse relations"] += 1
            continue
        rows = [row for row in reference[path] if row.annotation.terms]
        if len({row_shown(row.values) for row in rows}) < len(rows):
            report["relations with rows alike"] += 1
            continue
        got = Counter(
            (row_shown(row.values), text) for row in answer.tuples if (text := row.annotations["polynomial"]) != "0"
        )
        expected = Counter((row_shown(row.values), str(row.annotation)) for row in rows)
        if "COLLECT(" in str(got) or "GET FIELD(" in str(got):  # a bag, or a field of a nested row, written otherwise
            report["relations with conditions on bags"] += 1
            continue
        report["relations annotated"] += 1
        if got != expected:
            yield f"{address}: polynomials {got - expected} instead of {expected - got}"


def _graph(case: Case, report: Counter[str]) -> Any:
    with case.opened_files as opened:
        yield from graph_problems(
            opened.run,
            opened.files,
            random.Random(case.seed + 3),
            lambda gone: case.reference(gone),
            case.outputs(),
            there,
            row_shown,
        )


def _deletions(case: Case, lists: list[list[str]], report: Counter[str]) -> Any:
    after = [case.reference(gone) for gone in lists]
    outputs = case.outputs()
    anew = case.anew(lists[-1])
    for address, path in outputs.items():
        if anew[address] != there(after[-1][path]):
            yield f"{address}: the reference is wrong without {lists[-1]}: {anew[address]} not {there(after[-1][path])}"
    for mode in MODES if case.seed % 5 == 0 else MODES[:2]:
        answers = case.graph.workflow_deletions(case.run.id, lists, mode=mode, program=case.flow, spark=case.spark)
        for gone, answer, expected in zip(lists, answers, after, strict=True):
            for (name, execution, node), path in outputs.items():
                own = answer.relations[name]
                rows = [row for (at, row), of in zip(own.rows, own.nodes, strict=True) if (at, of) == (execution, node)]
                gains = [row for row, by in zip(own.gains, own.gained_by, strict=True) if by == (execution, node)]
                report.update(f"{mode} {row.status}" for row in rows)
                what = f"{mode} without {gone}, {node}/{name}@{execution}"
                yield from contradictions(what, rows, gains, own.gains_possible, there(expected[path]), row_shown)
                is_open = own.gains_possible or any(row.status == "unknown" for row in rows)
                if mode != "propagate" and is_open:
                    yield f"{what}: not decided: {answer.not_replayable} {answer.notes}"


def session() -> Any:
    """A small Spark session."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("random workflows")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "1200m",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",  # a few rows a query: compiling costs more than it saves
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.log.level": "OFF",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def run(seeds: range, spark: Any) -> tuple[list[str], Counter[str], int]:
    """The problems of some seeds, the statuses that were compared, and how many workflows ran."""
    report: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            found = problems(Case(seed, Path(folder).resolve(), spark), report)
        print(f"{seed}: {len(found)} wrong", *(each[:1500] for each in found), sep="\n", flush=True)
        wrong += found
    return wrong, report, len(seeds)


def main(arguments: list[str]) -> int:
    start = int(arguments[1]) if len(arguments) > 1 else 0
    wrong, report, cases = run(range(start, start + int(arguments[0])), session())
    print(f"{cases} workflows, {len(wrong)} wrong")
    for name, number in sorted(report.items()):
        print(f"{name}: {number:,}")
    print(*shares_unknown(report), sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
