"""A boundary engine without Spark: relations are lists of rows, on disk as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import govtool
from govtool.app.workflow_runs.executions import WorkflowRunner
from govtool.app.workflow_runs.inputs import InputFolder, listing
from govtool.app.workflow_runs.state import StateFolder
from govtool.model.workflow_run import BoundaryRelation


class JsonFrames:
    """Frames are lists."""

    def __init__(self):
        self.written = []
        self.jobs = 0

    def read(self, relation, declared):
        place = Path(relation.path)
        files = [place] if place.is_file() else sorted(place.iterdir())
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def empty(self, declared):
        return []

    def jobs_run(self):
        return self.jobs

    def write(self, frame, place, declared, expected):
        place.mkdir(parents=True)
        (place / "part.json").write_text("".join(json.dumps(row) + "\n" for row in frame))
        self.written.append(f"{place.parent.name}/{place.name}")
        return BoundaryRelation(str(place), "json", "", listing(place))


class Sequence:
    """A sequence of executions of a workflow, over a folder."""

    def __init__(self, flow, folder, **options):
        self.frames = JsonFrames()
        self.folder = StateFolder(Path(folder) / "state", flow.name)
        self.inputs = InputFolder(Path(folder) / "in")
        self.flow, self.options = flow, options

    def run(self, count=1):
        """Run some executions; return the rows of their outputs, by relation."""
        with self.folder.opened() as pointer:
            runner = WorkflowRunner(
                self.flow.validated(), self.frames, self.folder, self.inputs, pointer, **self.options
            )
            return [self.rows(runner.execute()) for _ in range(count)]

    def rows(self, result):
        return {name: self.frames.read(each, None) for (_, name), each in result.outputs.items()}


def give(folder, **relations):
    """Write inputs as JSON lines: ``give(folder, In=[…])``; ``"2/In"`` and ``"state/M.Kept"`` through ``**{}``."""
    for name, rows in relations.items():
        file = Path(folder) / "in" / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def counter(name="Counter", hook=lambda: None):
    """A module that numbers what it receives, over all of its invocations."""

    @govtool.module(name, {"In": "n int"}, {"Seen": "n int"}, {"Out": "n int"})
    def count(rows, seen):
        hook()
        fresh = [row + 1000 * (len(seen) + 1) for row in rows]
        return {"Out": fresh, "Seen": [*seen, *fresh]}

    return count
