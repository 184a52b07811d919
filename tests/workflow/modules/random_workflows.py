"""Random workflows over DuckDB, compared with the brute-force reference: deletions, annotations, zoom, dependency.

Modules are random plans of the reference over what they receive and keep. Modules are used twice, share state, stand in
loops, and run in sequences of executions, in the order of the product's own schedule.

python tests/workflow/modules/random_workflows.py 100 [first seed]
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

if __name__ == "__main__" or "annotated_differential" not in sys.modules:
    here = Path(__file__).parent
    sys.path[:0] = [str(each) for each in (here.parents[1], here, here.parent / "graph", here.parent / "annotate")]

import pyarrow as pa
import pyarrow.parquet as pq
from annotated_differential import normal, row_key
from reference import algebra
from reference.algebra import Col, Given, Lit, Project, Row
from reference.generate import Plans, Sql, Typed, counts_rows
from reference.polynomial import token

import govtool
from govtool.app.workflow_runs import deletion
from govtool.app.workflow_runs.executions import WorkflowRunner
from govtool.app.workflow_runs.inputs import InputFolder, listing
from govtool.app.workflow_runs.opened import OpenedRun
from govtool.app.workflow_runs.state import StateFolder
from govtool.app.workflow_runs.why import why_in_run
from govtool.app.workflow_runs.without_records import RunReplayer
from govtool.errors import UsageError
from govtool.model.workflow_run import BoundaryRelation, WorkflowRun
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan import types as t
from govtool.records.plan.from_sql import from_sql, table
from govtool.records.plan.nodes import File, Limit, Plan, Session, Write
from govtool.records.sql.dialect import NotExact
from govtool.workflow.modules.run_graph import build_run_graph
from govtool.workflow.modules.run_tuples import RelationRows

SESSION = Session("4.0", ansi=True, zone="UTC")
COLUMNS = ("id", "x", "g")
KINDS = ("int", "int", "str")
TYPES = {pa.int32(): t.INTEGER, pa.int64(): t.LONG, pa.string(): t.STRING}

MOST_ROWS = 500


class TooManyRows(UsageError):
    """A loop multiplied its rows with each other: the reference would not end."""


class Text(Sql):
    """Writes plans over relations of a run, under other names where such are given."""

    def __init__(self, names=()):
        super().__init__()
        self.tables = dict(names)

    def _given(self, plan, outer):
        return self._scan(replace(plan, name=self.tables.get(plan.name, plan.name)), outer)


class Over(Plans):
    """Random plans over some relations."""

    def __init__(self, rng, relations):
        super().__init__(rng)
        self.relations = relations

    def _scan(self, outer):
        plan, unique = self.rng.choice(self.relations)
        return Typed(plan, KINDS, unique)

    def relation(self, depth):
        """A random plan whose rows are those of a relation: an int, an int, a text."""
        found = self.plan(depth)
        columns, unique = [], None
        for place, kind in enumerate(KINDS):
            fitting = [at for at, each in enumerate(found.kinds) if each == kind]
            columns.append(Col(self.rng.choice(fitting)) if fitting else Lit(1 if kind == "int" else "a"))
            if fitting and place == 0 and found.unique in fitting and self.rng.random() < 0.7:
                columns[0], unique = Col(found.unique), 0
        return Project(found.plan, tuple(columns)), unique


class Frames:
    """Frames are plans of the reference over relations of the run; writing one evaluates it in DuckDB."""

    def __init__(self):
        self.relations, self.plans, self.logical, self.unique = {}, {}, {}, {}

    def name(self, path):
        return f"p{list(self.relations).index(path)}"

    def read(self, relation, declared):
        self.relations.setdefault(relation.path, relation)
        return Given(self.name(relation.path), COLUMNS), self.unique.get(relation.path, None)

    def empty(self, declared):
        raise AssertionError("state has initial versions")

    def jobs_run(self):
        return 0

    def write(self, frame, place, declared, expected):
        plan, _ = frame  # what is unique in it is forgotten: rows that are known in a replay are another relation
        catalog = {self.name(path): leaf_of(each) for path, each in self.relations.items()}
        root = from_sql(Text().text(plan), catalog)
        rows = DuckExecutor(SESSION, threads=1).arrow(Limit(root, MOST_ROWS + 1)).rename_columns(list(COLUMNS))
        if rows.num_rows > MOST_ROWS:
            raise TooManyRows(f"more than {MOST_ROWS} rows")
        place.mkdir(parents=True)
        pq.write_table(rows, place / "part-0.parquet")
        relation = BoundaryRelation(str(place), "parquet", "", listing(place))
        self.relations[relation.path] = relation
        self.plans[relation.path] = Plan(Write(root, str(place), "parquet", "overwrite", COLUMNS), SESSION)
        self.logical[relation.path] = plan
        return relation

    def without(self, relation, rows, place):
        whole = pq.ParquetFile(relation.path).read()
        place.mkdir(parents=True)
        kept = [at for at in range(whole.num_rows) if at not in rows]
        pq.write_table(whole.take(pa.array(kept, pa.int64())), place / "part-0.parquet")
        self.unique[str(place)] = self.unique.get(relation.path)  # else a module would draw another plan
        return BoundaryRelation(str(place), "parquet", "", listing(place))


def token_of(path, row):
    """The token of a record; an execution's own file has other records than that of all."""
    place = Path(path)
    return f"{place.parent.name}/{place.stem}:{row}" if place.parent.name.isdigit() else f"{place.stem}:{row}"


def leaf_of(relation):
    schema = pq.read_schema(unquote(urlparse(relation.files[0].uri).path))
    fields = t.Struct(tuple(t.Field(each.name, TYPES[each.type]) for each in schema))
    files = tuple(File(n, each.uri, each.size, each.modified) for n, each in enumerate(relation.files))
    return replace(table("r", fields), format="parquet", files=files)


@dataclass
class Files:
    """Plans and rows of a random run; see ``RunFiles``."""

    frames: Frames

    def plan(self, path):
        return self.frames.plans.get(path)

    def reason(self, path):
        return "it was not recorded"

    def rows(self, relation):
        whole = pq.ParquetDataset(relation.path).read()
        values = [tuple(row[name] for name in COLUMNS) for row in whole.to_pylist()]
        return RelationRows(COLUMNS, values, (len(values),), [token_of(relation.path, at) for at in range(len(values))])

    def leaf(self, relation, ids):
        found = leaf_of(relation)
        columns = tuple(ids.attribute(each.name, each.type) for each in found.columns)
        return replace(found, dataset=relation.path, columns=columns)

    def executors(self, plan):
        yield DuckExecutor(SESSION, threads=1)


class Recorder:
    def __init__(self):
        self.invocations, self.relations, self.whole = [], {}, 0

    def invoked(self, invocation, relations):
        self.invocations.append(invocation)
        self.relations.update(relations)

    def executed(self, execution):
        self.whole = execution


# ---- a random workflow ------------------------------------------------------------------------------------------------


def module_of(rng, name, inputs, state, outputs):
    """A module whose outputs and state are random plans, the same at each invocation."""
    seed = rng.randrange(1 << 30)

    @govtool.module(name, inputs, state, outputs)
    def call(*frames):
        own = random.Random(seed)
        shares = random.Random(seed).random() < 0.4
        made = {}
        for number, relation in enumerate((*outputs, *state)):
            if relation in state and own.random() < 0.2:
                continue  # it stays as it is
            # Each plan draws for itself: the ids of what it reads differ from invocation to invocation.
            plans, depth = Over(random.Random(seed + number), list(frames)), own.randint(1, 2)
            plan = plans.relation(depth)
            while counts_rows(
                plan[0]
            ):  # what reads it, as windows do, needs a row of the reference for each of its rows
                plan = plans.relation(depth)
            if relation in state:  # what was there, and what is new; or what was sent, whose operators it shares
                before = frames[len(inputs) + state.index(relation)][0]
                if shares:
                    made[relation] = algebra.Union(made[outputs[0]][0], before), None
                    continue
                both = algebra.Union(before, plan[0])
                plan = (both if own.random() < 0.5 else plan[0]), None
            made[relation] = plan
        return made

    return call


def random_flow(rng, module_of=module_of, grouped=False):
    """A workflow: its nodes, edges, loops, shared state. With ``grouped``, some relations (``N…``) hold bags."""
    modules, nodes, edges = {}, {}, []
    available = []  # (node, relation)
    shared = {}
    for number in range(rng.randint(2, 4)):
        source = [each for each in available if rng.random() < 0.6][-2:]
        if number and not source:
            source = [rng.choice(available)]
        if number == 0:
            inputs = rng.choice([["R"], ["S"], ["R", "S"]])
        else:
            if rng.random() < 0.3:  # a node receives all of its inputs from others, or none
                nodes[f"f{number}"] = module_of(rng, f"F{number}", [rng.choice(["R", "S"])], [], [f"F{number}_"])
                source.append((f"f{number}", f"F{number}_"))
            inputs = [relation for _, relation in source]
        state = ["K"] if rng.random() < 0.5 else []
        if rng.random() < 0.4:
            state.append("Ledger")
            shared.setdefault("Ledger", []).append(f"M{number}")
        outputs = [f"O{number}"] + ([f"P{number}"] if rng.random() < 0.3 else [])
        outputs += [f"N{number}"] if grouped and rng.random() < 0.5 else []
        modules[f"M{number}"] = module = module_of(rng, f"M{number}", inputs, state, outputs)
        nodes[f"n{number}"] = module
        edges += [(node, f"n{number}", relation) for node, relation in source]
        available += [(f"n{number}", relation) for relation in outputs]
    twice = rng.choice([None, *nodes]) if rng.random() < 0.5 else None
    if twice is not None:  # used again, below a module that turns an output into its inputs
        module = nodes[twice]
        wanted = list(module.input_names)
        back = module_of(rng, "Back", [module.output_names[0]], [], wanted)
        nodes |= {"back": back, "again": module}
        edges.append((twice, "back", module.output_names[0]))
        edges += [("back", "again", relation) for relation in wanted]
    keep = {node: [next(iter(nodes[node].output_names))] for node in nodes if rng.random() < 0.5}
    if len(shared.get("Ledger", ())) < 2:
        shared = {}
    return {"nodes": nodes, "edges": edges, "loops": [], "shared": shared, "keep": keep}


def looped(rng, module_of=module_of):
    """A bounded loop between a start and an end."""
    start = module_of(rng, "Start", ["R"], [], ["Guess"])
    step = module_of(rng, "Step", ["Guess"], ["K"] if rng.random() < 0.6 else [], ["Next"])
    check = module_of(rng, "Check", ["Next"], [], ["Guess"])
    end = module_of(rng, "End", ["Next"], [], ["Last"])
    return {
        "nodes": {"start": start, "step": step, "check": check, "end": end},
        "edges": [("start", "step", "Guess"), ("step", "check", "Next"), ("step", "end", "Next")],
        "loops": [govtool.BoundedLoop(["step", "check"], times=rng.randint(2, 3), back=[("check", "step", "Guess")])],
        "shared": {},
        "keep": {"step": ["Next"]} if rng.random() < 0.3 else {},
    }


def records(rng, name):
    cell = lambda: None if rng.random() < 0.2 else rng.choice((1, 1, 2, 3))  # noqa: E731
    rows = [(cell(), rng.choice(("a", "a", "b", None))) for _ in range(rng.randint(0, 4))]
    return [(f"{name}:{at}", (at, *row)) for at, row in enumerate(rows)]


def store_rows(folder, name, rows):
    columns = list(zip(*(values for _, values in rows), strict=True)) or [(), (), ()]
    kinds = (pa.int32(), pa.int32(), pa.string())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    file = folder / f"{name}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(zip(COLUMNS, arrays, strict=True))), file)


class Case:
    """A random workflow that ran over random records."""

    def __init__(self, seed, folder, order=None):
        rng = random.Random(seed)
        self.seed, self.folder = seed, folder
        parts = looped(rng) if rng.random() < 0.25 else random_flow(rng)
        if order is not None:  # declared in another order
            parts["nodes"] = dict(order.sample(list(parts["nodes"].items()), len(parts["nodes"])))
            parts["edges"] = order.sample(parts["edges"], len(parts["edges"]))
        self.flow = govtool.Workflow("w", **parts)
        broken = [each.message for each in self.flow.violations()]
        self.is_valid = not broken
        if broken:
            return
        self.schedule = self.flow.validated()
        self.data = {}
        for name in self.schedule.inputs:
            self._given(rng, name, name)
            if rng.random() < 0.3:
                self._given(rng, f"2/{name}", f"{name}2")
        for slot in self.schedule.state:
            self._given(rng, f"state/{slot}", slot)
        self.frames, recorder = Frames(), Recorder()
        state = StateFolder(folder / "state", "w")
        with state.opened() as pointer:
            inputs = InputFolder(folder / "in")
            runner = WorkflowRunner(self.schedule, self.frames, state, inputs, pointer, observer=recorder)
            for path in (folder / "in").rglob("*.parquet"):
                self.frames.unique[str(path.absolute())] = 0
            for _ in range(rng.randint(1, 2)):
                runner.execute()
        self.run = WorkflowRun(
            "r", "w", "complete", "records", (), "", "", "", (), tuple(recorder.invocations), recorder.relations,
            recorder.whole,
        )  # fmt: skip
        self.files = Files(self.frames)
        self.opened = OpenedRun(self.run, self.files)
        self.tokens = [token for path, rows in self.data.items() if path in self.run.relations for token, _ in rows]

    def _given(self, rng, place, name):
        file = (self.folder / "in" / f"{place}.parquet").absolute()
        rows = records(rng, Path(place).name if "/" not in place or place.startswith("state") else name)
        store_rows(self.folder / "in", place, rows)
        self.data[str(file)] = [(token_of(file, at), values) for at, (_, values) in enumerate(rows)]

    def reference(self, gone=()):
        """The annotated rows of everything that was written, as the reference evaluates it without some records."""
        data: dict[str, Any] = {}
        for path in self.frames.relations:
            if path in self.data:
                rows = [Row(values, token(tok)) for tok, values in self.data[path] if tok not in gone]
            else:
                rows = algebra.evaluate(self.frames.logical[path], data) if path in self.frames.logical else []
            data[self.frames.name(path)] = rows
        return {path: data[self.frames.name(path)] for path in self.run.relations}

    def outputs(self):
        """The versions of the outputs, by relation, execution and node."""
        return {
            (name, each.execution, each.node): path
            for each in self.run.invocations
            for name, path in each.outputs
            if name in each.kept
        }


def rows_in(reference):
    return Counter(row_key(row.values) for row in reference for _ in range(row.annotation.count()))


def problems(case, report):
    """What the product says otherwise than the reference."""
    wrong = [*_annotations(case)]
    wrong += graph_problems(case.run, case.files, random.Random(case.seed + 3), case.reference, case.outputs())
    rng = random.Random(case.seed + 7)
    for share in (0.15, 0.5):
        gone = sorted({each for each in case.tokens if rng.random() < share})
        if gone:
            wrong += _deletion(case, gone, report)
    return [f"seed {case.seed}: {each}" for each in wrong]


def _annotations(case):
    reference = case.reference()
    for (name, execution, node), path in case.outputs().items():
        address = f"{node}/{name}@{execution}"
        found = why_in_run(case.opened, address, ["polynomial", "count"])
        got = Counter()
        for row in found.tuples:
            text = row.annotations["polynomial"]
            if text != "0":
                got[row_key(tuple(map(normal, row.values))), text] += 1
        expected = Counter()
        for row in reference[path]:
            if row.annotation.terms:
                expected[row_key(tuple(map(normal, row.values))), str(row.annotation)] += 1
        if any(notes.partition(": ")[2] for notes in found.notes):
            continue  # depends on everything that its invocation read
        if by_value(got, reference[path], found) != 0 and got != expected:
            yield f"{address}: polynomials {got - expected} instead of {expected - got}"


def by_value(got, rows, found):
    """0 where rows of equal plain values are summed in one and not in the other: then texts are not compared."""
    values = [row_key(row.values) for row in rows if row.annotation.terms]
    return 0 if len(set(values)) < len(values) else 1


def _deletion(case, gone, report):
    after = case.reference(gone)
    outputs = case.outputs()
    property_ = deletion._Deletions._replayer
    for mode in deletion.MODES:
        frames = Frames()
        frames.relations.update(case.frames.relations)
        frames.unique.update(case.frames.unique)
        deletion._Deletions._replayer = RunReplayer(case.run, case.files, case.schedule, frames)
        try:
            request = deletion.RunDeletionRequest([gone], mode)
            (answer,) = deletion.delete_in_run(case.opened, request)
        finally:
            deletion._Deletions._replayer = property_
        for (name, execution, node), path in outputs.items():
            own = answer.relations[name]
            rows = [row for (at, row), of in zip(own.rows, own.nodes, strict=True) if (at, of) == (execution, node)]
            gains = [row for row, by in zip(own.gains, own.gained_by, strict=True) if by == (execution, node)]
            report.update(f"{mode} {row.status}" for row in rows)
            yield from contradictions(
                f"{mode} without {gone}, {node}/{name}@{execution}",
                rows,
                gains,
                own.gains_possible,
                rows_in(after[path]),
            )
            if mode != "propagate" and any(row.status == "unknown" for row in rows):
                yield f"{mode} without {gone}: unknown rows of {node}/{name}@{execution}: {answer.not_replayable}"


def contradictions(what, rows, gains, gains_possible, after, key=row_key):
    """What rows with their statuses, and gains, say otherwise than the rows after a deletion."""
    sure = Counter(key(row.after) for row in rows if row.after is not None) + Counter(map(key, gains))
    unknown = sum(row.status == "unknown" for row in rows)
    if sure - after:
        yield f"{what}: {sure - after} are not in a re-run"
    left = after - sure
    if left.total() > unknown and not gains_possible:
        yield f"{what}: {left} are in a re-run, {unknown} rows are unknown"
    before = Counter(key(row.before) for row in rows)
    taken = Counter(key(row.before) for row in rows if row.status == "deleted")
    if taken - (before - after):
        yield f"{what}: {taken - (before - after)} are called deleted, and are in a re-run"


# ---- the graph --------------------------------------------------------------------------------------------------------


def graph_problems(run, files, rng, reference, outputs, rows_of=rows_in, key=row_key):
    """What the graph of a run says otherwise than the reference: zoom, deletion, dependency, subgraphs, rows.

    ``reference`` gives the annotated rows of each relation without some tokens, ``rows_of`` the rows that are there.
    """
    import numpy as np
    from drawn_graphs import plain, shown
    from reference import graphs

    from govtool.workflow.deletion import delete
    from govtool.workflow.dependency import dependency
    from govtool.workflow.formats.write import WRITERS
    from govtool.workflow.modules.run_rows import output_deletions
    from govtool.workflow.subgraph import subgraph
    from govtool.workflow.zoom import GraphView

    found = build_run_graph(run, files)
    graph, fine = found.graph, GraphView(found.graph)
    body = json.loads("".join(WRITERS["json"](fine)))
    for node in body["nodes"]:
        node.setdefault("module", None)
    expected = plain(body)
    modules = [each for each in graph.modules if rng.random() < 0.5]
    out = fine.zoom_out(*modules)
    zoomed = graphs.zoom_out(expected, modules)
    nodes, edges = shown(out)
    if nodes != set(zoomed.nodes) or edges != Counter((s, e) for s, e, _ in zoomed.edges):
        yield f"zoom out of {modules}: {nodes ^ set(zoomed.nodes)}"
    if shown(out.zoom_in(*modules)) != shown(fine):
        yield f"zoom in does not undo zoom out of {modules}"
    records_ = [node["id"] for node in body["nodes"] if node["type"] in ("wi", "st")]
    if not records_:
        return
    on = rng.sample(records_, min(2, len(records_)))
    deleted = delete(graph, [graph.with_id(each) for each in on])
    if set(graph.ids_of(deleted.removed)) != graphs.delete(expected, on):
        yield f"deletion of {on} in the graph"
    for node in rng.sample(list(expected.nodes), min(3, len(expected.nodes))):
        number = graph.with_id(node)
        asked = dependency(graph, number, [graph.with_id(each) for each in on])
        if (asked.depends is True) != (node in graphs.delete(expected, on)):
            yield f"{node} depends on {on}: {asked.depends}"
        part = subgraph(graph, number)
        got = [set(graph.ids_of(each)) for each in (part.ancestors, part.descendants, part.siblings)]
        if tuple(got) != graphs.subgraph(expected, node):
            yield f"subgraph of {node}"
    tokens = [graph.label_of(graph.with_id(each)) for each in on]
    same = [graph.ids_of(np.asarray(each)) for each in graph.with_tokens(tokens).values()]
    if {str(n) for each in same for n in each} != {str(each) for each in on}:
        return  # one record has several nodes
    after = reference(tokens)
    for name, own in output_deletions(graph, found.outputs, deleted).items():
        for (relation, execution, node), path in outputs.items():
            if relation == name:
                rows = [row for (at, row), of in zip(own.rows, own.nodes, strict=True) if (at, of) == (execution, node)]
                gains = [row for row, by in zip(own.gains, own.gained_by, strict=True) if by == (execution, node)]
                what = f"graph without {tokens}, {node}/{name}@{execution}"
                yield from contradictions(what, rows, gains, own.gains_possible, rows_of(after[path]), key)


def run(seeds):
    """The problems of some seeds, and the statuses that were compared."""
    report, wrong, cases = Counter(), [], 0
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                case = Case(seed, Path(folder), random.Random(seed) if seed % 2 == 0 else None)
            except (NotExact, TooManyRows):
                report["skipped"] += 1
                continue
            if not case.is_valid:
                report["invalid"] += 1
                print(seed, [each.message for each in case.flow.violations()])
                continue
            cases += 1
            found = problems(case, report)
        print(f"{seed}: {len(found)} wrong", *found, sep="\n", flush=True)
        wrong += found
    return wrong, report, cases


def shares_unknown(report):
    """For each mode, the share of the rows before a deletion whose status is unknown."""
    for mode in deletion.MODES:
        rows = sum(number for name, number in report.items() if name.startswith(f"{mode} "))
        if rows:
            yield f"{mode}: {report[f'{mode} unknown'] / rows:.1%} of {rows:,} rows are unknown"


def main(arguments):
    start = int(arguments[1]) if len(arguments) > 1 else 0
    wrong, report, cases = run(range(start, start + int(arguments[0])))
    print(f"{cases} workflows, {len(wrong)} wrong", dict(sorted(report.items())))
    print(*shares_unknown(report), sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
