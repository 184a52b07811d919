"""Names of relations that each run of a workflow keeps in a folder of its own.

``STATE/RUN/joined`` of two runs is one relation, ``STATE/joined``: runs are compared by relation, since nothing that
two runs wrote would pair otherwise. A file of CSV that runs keep as Parquet goes by its own place.

Executions of a workflow in Python keep theirs in ``STATE/e000012.1f0c22ab/NODE/RELATION``. Between runs, such a
relation is ``WORKFLOW/NODE/RELATION``, whatever the state folder: a sequence that starts anew has another one. What
execution 12 read from ``DIR/12/Payments.csv``, the place of its own inputs, is ``DIR/Payments.csv``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from govtool.model.run import KEPT_FROM, Run, RunInput, RunOutput
from govtool.query.runs.history import History

_WORKFLOW = "workflow:"
"""The beginning of the source of what a workflow's runs wrote."""
_EXECUTION = re.compile(r"e[0-9]{6,}\.[0-9a-f]{8}")
"""The folder of one execution within the state folder of a workflow (``govtool/app/workflow_runs/state.py``)."""


def relation_name(dataset: str, folders: Container[str]) -> str:
    """The name of a dataset without the folders of runs and executions.

    Args:
        dataset: A dataset's name.
        folders: Names of the runs' own folders.
    """
    if "/" not in dataset:
        return dataset
    return "/".join(part for part in dataset.split("/") if not part or not _is_run_folder(part, folders))


def _is_run_folder(part: str, folders: Container[str]) -> bool:
    return part in folders or _EXECUTION.fullmatch(part) is not None


def workflow_relation(dataset: str) -> tuple[str, str] | None:
    """The state folder and ``NODE/RELATION`` of an execution's output; None if the dataset is not one."""
    parts = dataset.split("/")
    at = next((at for at in range(len(parts) - 3, 0, -1) if _EXECUTION.fullmatch(parts[at])), None)
    return None if at is None else ("/".join(parts[:at]), "/".join(parts[at + 1 :]))


def _execution(written: str) -> int | None:
    """The number of the execution that wrote a dataset; None: no execution did."""
    found = next((part for part in written.split("/") if _EXECUTION.fullmatch(part)), None)
    return None if found is None else int(found[1:].partition(".")[0])


class RelationHistory:
    """The history of runs under the names of relations.

    Args:
        history: All runs, under the names of their datasets.
    """

    def __init__(self, history: History) -> None:
        self._names = names = _names_of(history)
        self._named = {(run.id, run.job): names.renamed(run) for run in history.runs} if names is not None else {}
        self.history = History(self._named.values()) if names is not None else history

    def run(self, run: Run) -> Run:
        """A run of the history under the names of relations."""
        return self._named.get((run.id, run.job), run)

    def name(self, dataset: str) -> str:
        """The name of the relation that a dataset is a version of."""
        return dataset if self._names is None else self._names.of(dataset)


@dataclass(frozen=True, slots=True)
class _RelationNames:
    """How datasets of a history are called between runs.

    Attributes:
        folders: Names of the runs' own folders.
        states: The workflow of each state folder.
        origins: The origin of each relation whose copies have one.
        inputs: The name of each dataset that an execution read from the folder of its own inputs.
    """

    folders: frozenset[str]
    states: Mapping[str, str]
    origins: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    def of(self, dataset: str) -> str:
        """The name of a dataset."""
        found = workflow_relation(dataset)
        if found is not None and found[0] in self.states:
            return f"{self.states[found[0]]}/{found[1]}"
        return self.inputs.get(dataset) or relation_name(dataset, self.folders)

    def renamed(self, run: Run) -> Run:
        """A run with the names of relations."""
        inputs = tuple(self._input(each) for each in run.inputs)
        outputs = tuple(self._output(each) for each in run.outputs)
        same = (inputs, outputs) == (run.inputs, run.outputs)
        return run if same else replace(run, inputs=inputs, outputs=outputs)

    def _output(self, written: RunOutput) -> RunOutput:
        """An output; an execution writes a whole version into its own folder, and adds to none."""
        mode = "create" if workflow_relation(written.dataset) is not None else written.mode
        return replace(written, dataset=self.of(written.dataset), mode=mode)

    def _input(self, read: RunInput) -> RunInput:
        name = self.of(read.dataset)
        options = tuple(each for each in read.options if each[0] != KEPT_FROM)
        return replace(read, dataset=self.origins.get(name, name), options=options)


def _names_of(history: History) -> _RelationNames | None:
    """The names of a history; None where no run has a folder of its own."""
    folders = frozenset(run.application for run in history.runs if _has_own_folder(run))
    states = {
        found[0]: run.source.removeprefix(_WORKFLOW)
        for run in history.runs
        if run.source.startswith(_WORKFLOW)
        for written in run.outputs
        if (found := workflow_relation(written.dataset)) is not None
    }
    if not folders and not states:
        return None
    names = _RelationNames(folders, states, inputs=_inputs_of_executions(history))
    return replace(names, origins=_origins(history, names))


def _inputs_of_executions(history: History) -> dict[str, str]:
    """The names of what executions of workflows read from the folders of their own inputs."""
    found: dict[str, str] = {}
    for run in history.runs:
        numbers = {_execution(written.dataset) for written in run.outputs} if run.source.startswith(_WORKFLOW) else ()
        for read in run.inputs:
            folder, _, relation = read.dataset.rpartition("/")
            root, slash, number = folder.rpartition("/")
            if slash and number.isdecimal() and int(number) in numbers:
                found[read.dataset] = f"{root}/{relation}"
    return found


def _has_own_folder(run: Run) -> bool:
    datasets = [*(read.dataset for read in run.inputs), *(written.dataset for written in run.outputs)]
    return bool(run.application) and any(f"/{run.application}/" in name for name in datasets)


def _origins(history: History, names: _RelationNames) -> dict[str, str]:
    """The origin of each relation whose copies have one; copies of several still pair, by the relation."""
    found: dict[str, set[str]] = {}
    for run in history.runs:
        for read in run.inputs:
            origin = dict(read.options).get(KEPT_FROM)
            if origin is not None:
                found.setdefault(names.of(read.dataset), set()).add(origin)
    return {name: next(iter(origins)) for name, origins in found.items() if len(origins) == 1}
