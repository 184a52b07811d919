"""Runs again without some records: compared with a sequence that never had them, over lists in JSON lines."""

from __future__ import annotations

import json
import random
from itertools import chain, combinations
from pathlib import Path

import pytest
from jsonframes import JsonFrames, Sequence, give

import govtool
from govtool.app.workflow_runs.relation_copies import lines_without
from govtool.app.workflow_runs.without_records import RunReplayer, required_for
from govtool.errors import EngineError
from govtool.model.workflow_run import BoundaryRelation, RelationFile, WorkflowRun


class Frames(JsonFrames):
    """Lists that rows can be left out of."""

    def without(self, relation, rows, place):
        return lines_without(relation, rows, place)


class Recorder:
    """Keeps what ran."""

    def __init__(self):
        self.invocations, self.relations = [], {}

    def invoked(self, invocation, relations):
        self.invocations.append(invocation)
        self.relations.update(relations)

    def executed(self, execution):
        self.whole = execution

    def run(self):
        return WorkflowRun(
            "r", "w", "complete", "records", (), "", "", "", (), tuple(self.invocations), self.relations, self.whole
        )  # fmt: skip


class Files:
    """Nothing is known of plans."""

    def plan(self, path):
        return None


@govtool.module("Shop", {"Orders": "n int"}, {"Stock": "n int", "Seen": "n int"}, {"Sold": "n int", "Left": "n int"})
def shop(orders, stock, seen):
    """Sell what is in stock; remember only executions in which something was sold: state may stay as it is."""
    sold = [n for n in orders if n in stock]
    left = [n for n in stock if n not in sold]
    changed = {"Seen": [*seen, *sold]} if sold else {}
    return {"Sold": sold, "Left": left[:1], "Stock": left, **changed}


@govtool.module("Count", {"Sold": "n int", "Left": "n int"}, {}, {"Total": "n int", "Parity": "n int"})
def count(sold, left):
    return {"Total": [sum(sold) + sum(left)], "Parity": [len(sold) % 2]}


@govtool.module("Report", {"Parity": "n int"}, {"Seen": "n int"}, {"Says": "n int", "Orders": "n int"})
def report(parity, seen):
    return {"Says": [*parity, *seen], "Orders": [n + 1 for n in seen]}


EDGES = [("early", "count", ["Sold", "Left"]), ("count", "report", "Parity"), ("report", "late", "Orders")]


def flow():
    return govtool.Workflow(
        "w",
        nodes={"early": shop, "late": shop, "count": count, "report": report},
        edges=EDGES,
        shared={"Seen": ["Shop", "Report"]},
        keep={"count": ["Total"], "report": ["Says"]},
    )


GIVEN = {"1/Orders": [1, 2, 5], "2/Orders": [3, 9], "3/Orders": [2, 4], "state/Shop.Stock": [1, 2, 3, 4]}


def ran(folder, given):
    """The run over some inputs, and the rows of its outputs."""
    give(folder, **given)
    recorder = Recorder()
    sequence = Sequence(flow(), folder, observer=recorder)
    sequence.run(3)
    run = recorder.run()
    return run, values(run)


def values(run, replaced=None):
    """The rows of everything that was written, by execution, node and name."""
    found = {}
    for each in run.invocations:
        made = chain(each.outputs, ((slot, path) for _, slot, path in each.new_state))
        for name, path in made:
            relation = (replaced or {}).get(path, run.relations[path])
            found[each.execution, each.node, name] = sorted(JsonFrames().read(relation, None)) if relation.files else []
    return found


def places(run):
    """The path of each input file."""
    return {name: next(path for path in run.relations if path.endswith(f"/{name}.jsonl")) for name in GIVEN}


def test_every_replay_is_the_run_without_the_rows(tmp_path):
    run, before = ran(tmp_path / "whole", GIVEN)
    replayer = RunReplayer(run, Files(), flow().validated(), Frames())
    rows = [(name, n) for name, own in GIVEN.items() for n in range(len(own))]
    called = []
    for number, gone in enumerate(chain(combinations(rows, 1), combinations(rows, 2))):
        left = {name: [v for n, v in enumerate(own) if (name, n) not in gone] for name, own in GIVEN.items()}
        _, expected = ran(tmp_path / f"left{number}", left)
        paths = places(run)
        without = {}
        for name, n in gone:
            without.setdefault(paths[name], set()).add(n)
        every = {path for each in run.invocations for _, path in each.outputs}
        found = replayer.without(without, every, tmp_path / f"again{number}")
        outputs = {key for key in before if key[2] in ("Sold", "Left", "Total", "Parity", "Says")}
        after = values(run, found.relations)
        assert {key: after[key] for key in outputs} == {key: expected[key] for key in outputs}, gone
        assert found.failed == {}
        called.append(len(found.invocations))
    assert min(called) < len(run.invocations) == 12  # what nothing reaches is not called


def test_only_what_a_relation_hangs_on_is_called(tmp_path):
    run, _ = ran(tmp_path, GIVEN)
    first = next(each for each in run.invocations if each.node == "count")
    total = dict(first.outputs)["Total"]
    assert [each.invocation.node for each in required_for(run, [total])] == ["early", "count"]
    made = {path for each in run.invocations if each.node == "early" for _, path in each.outputs}
    required = required_for(run, [total], made)
    assert [(each.invocation.node, each.is_known) for each in required] == [("early", True), ("count", False)]
    stock = {slot: path for _, slot, path in run.invocations[-1].new_state}["Shop.Stock"]
    assert not any(each.is_known for each in required_for(run, [stock], made))  # its state is not known
    # A relation that is known is taken as it is, and its module is not called.
    early = next(each for each in run.invocations if each.node == "early")
    known = {path: run.relations[path] for _, path in early.outputs}
    known.update((path, run.relations[path]) for _, _, path in early.new_state)
    replayer = RunReplayer(run, Files(), flow().validated(), Frames())
    found = replayer.without({places(run)["1/Orders"]: {0}}, [total], tmp_path / "again", known)
    assert found.invocations == []


def test_what_is_known_is_taken_whatever_its_module_received(tmp_path):
    """Some relations are known and have changed; what hangs on them is what a whole replay makes."""
    run, _ = ran(tmp_path / "whole", GIVEN)
    replayer = RunReplayer(run, Files(), flow().validated(), Frames())
    every = [path for each in run.invocations for _, path in each.outputs]
    every += [path for each in run.invocations for _, _, path in each.new_state]
    draw, fewer = random.Random(5), 0
    for number in range(60):
        name = draw.choice(list(GIVEN))
        gone = {places(run)[name]: {draw.randrange(len(GIVEN[name]))}}
        whole = replayer.without(gone, every, tmp_path / f"whole{number}")
        chosen, wanted = draw.sample(every, draw.randrange(len(every))), draw.choice(every)
        known = {path: whole.relations.get(path, run.relations[path]) for path in chosen}
        found = replayer.without(gone, [wanted], tmp_path / f"known{number}", known)
        first, second = (each.relations.get(wanted, run.relations[wanted]) for each in (whole, found))
        read = [sorted(JsonFrames().read(each, None)) if each.files else [] for each in (first, second)]
        assert read[0] == read[1], (number, gone, wanted)
        fewer += len(found.invocations) < len(whole.invocations)
    assert fewer > 30


def test_what_fails_again_is_named_with_all_that_hangs_on_it(tmp_path):
    run, _ = ran(tmp_path, GIVEN)

    @govtool.module("Shop", shop_schemas()[0], shop_schemas()[1], shop_schemas()[2])
    def broken(orders, stock, seen):
        raise ValueError("no")

    other = govtool.Workflow(
        "w",
        nodes={"early": broken, "late": broken, "count": count, "report": report},
        edges=EDGES,
        shared={"Seen": ["Shop", "Report"]},
        keep={"count": ["Total"], "report": ["Says"]},
    )
    replayer = RunReplayer(run, Files(), other.validated(), Frames())
    every = {path for each in run.invocations for _, path in each.outputs}
    found = replayer.without({places(run)["2/Orders"]: {0}}, every, tmp_path / "again")
    lost = {(each.execution, each.node) for each in run.invocations for _, path in each.outputs if path in found.failed}
    assert (1, "early") not in lost
    assert {(2, "early"), (2, "count"), (2, "report"), (3, "early"), (3, "report")} <= lost
    assert all("ValueError: no" in reason for reason in found.failed.values())


def shop_schemas():
    return [{each.name: each.schema for each in side} for side in (shop.inputs, shop.state, shop.outputs)]


def test_rows_of_text_are_left_out_by_their_numbers(tmp_path):
    """Lines that are not blank, also where a quote stays open: Spark is not told that cells have several."""
    rows = [line for n in range(5) for line in (f'{n},"a', f'b ""{n}"" ",\xe9')]
    file = tmp_path / "In.csv"
    file.write_text("\n".join(["n,text,more", *rows[:4], "", "  ", *rows[4:]]), encoding="latin-1")
    stat = file.stat()
    relation = BoundaryRelation(str(file), "csv", "", (RelationFile(file.as_uri(), stat.st_size, 1),))
    copy = lines_without(relation, {0, 9, 4}, tmp_path / "copy")
    (part,) = (Path(copy.path)).iterdir()
    left = [row for n, row in enumerate(rows) if n not in (0, 4, 9)]
    assert part.read_text(encoding="latin-1") == "\n".join(["n,text,more", *left, ""])


def test_json_lines_of_several_files(tmp_path):
    folder = tmp_path / "In"
    folder.mkdir()
    for name, numbers in (("a", range(3)), ("b", range(3, 5)), ("c", range(5, 9))):
        (folder / f"{name}.json").write_text("".join(f"{n}\n" for n in numbers))
    files = tuple(RelationFile(each.as_uri(), each.stat().st_size, 1) for each in sorted(folder.iterdir()))
    copy = lines_without(BoundaryRelation(str(folder), "json", "", files), {1, 3, 8}, tmp_path / "copy")
    found = [json.loads(line) for each in sorted(Path(copy.path).iterdir()) for line in each.read_text().splitlines()]
    assert found == [0, 2, 4, 5, 6, 7]


def test_a_program_of_other_nodes_is_refused(tmp_path):
    from govtool.app.workflow_runs.source import checked_schedule
    from govtool.errors import UsageError

    run, _ = ran(tmp_path, GIVEN)
    checked_schedule(run, flow())
    other = govtool.Workflow("w", {"early": shop, "count": count}, [("early", "count", ["Sold", "Left"])])
    with pytest.raises(UsageError, match="no node report of module Report"):
        checked_schedule(run, other)
    assert not issubclass(EngineError, UsageError)


def test_a_program_is_found_by_its_source_and_refused_when_it_changed(tmp_path):
    from dataclasses import replace

    from govtool.app.workflow_runs.load import load_workflow
    from govtool.app.workflow_runs.source import find_program, source_digest
    from govtool.errors import UsageError

    text = "import govtool\n\n@govtool.module('M', ['In'], (), ['Out'])\ndef m(rows):\n    return rows\n\n"
    text += "flow = govtool.Workflow('w', [m])\n"
    file = tmp_path / "wf.py"
    file.write_text(text)
    run = replace(ran(tmp_path / "run", GIVEN)[0], program=str(file), source=source_digest(load_workflow(str(file))))
    assert find_program(run, None, tmp_path / "run").is_same
    moved = tmp_path / "other" / "renamed.py"
    moved.parent.mkdir()
    file.rename(moved)
    assert find_program(run, None, moved.parent).is_same
    with pytest.raises(UsageError, match="is not found"):
        find_program(run, None, tmp_path / "run")
    file.write_text(text.replace("return rows", "return rows[:1]"))
    with pytest.raises(UsageError, match="has changed since"):
        find_program(run, None, tmp_path / "run")
    assert not find_program(run, str(file), tmp_path).is_same
    assert find_program(run, str(moved), tmp_path).is_same
