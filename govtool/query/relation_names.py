"""Names of relations that each run of a workflow keeps in a folder of its own.

``STATE/RUN/joined`` of two runs is one relation, ``STATE/joined``: runs are compared by relation, since nothing that
two runs wrote would pair otherwise. A file of CSV that runs keep as Parquet goes by its own place.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from govtool.model.run import KEPT_FROM, Run, RunInput
from govtool.query.runs import History


def relation_name(dataset: str, folders: Container[str]) -> str:
    """The name of a dataset without the folders of runs.

    Args:
        dataset: A dataset's name.
        folders: Names of the runs' own folders.
    """
    return "/".join(part for part in dataset.split("/") if part not in folders or not part)


class RelationHistory:
    """The history of runs under the names of relations.

    Args:
        history: All runs, under the names of their datasets.
    """

    def __init__(self, history: History) -> None:
        folders = {run.application for run in history.runs if _has_own_folder(run)}
        origins = _origins(history, folders)
        self._named = {(run.id, run.job): _named(run, folders, origins) for run in history.runs} if folders else {}
        self.history = History(self._named.values()) if folders else history

    def run(self, run: Run) -> Run:
        """A run of the history under the names of relations."""
        return self._named.get((run.id, run.job), run)


def _has_own_folder(run: Run) -> bool:
    datasets = [*(read.dataset for read in run.inputs), *(written.dataset for written in run.outputs)]
    return bool(run.application) and any(f"/{run.application}/" in name for name in datasets)


def _origins(history: History, folders: Container[str]) -> dict[str, str]:
    """The origin of each relation whose copies have one; copies of several still pair, by the relation."""
    found: dict[str, set[str]] = {}
    for run in history.runs:
        for read in run.inputs:
            origin = dict(read.options).get(KEPT_FROM)
            if origin is not None:
                found.setdefault(relation_name(read.dataset, folders), set()).add(origin)
    return {name: next(iter(origins)) for name, origins in found.items() if len(origins) == 1}


def _named(run: Run, folders: Container[str], origins: Mapping[str, str]) -> Run:
    inputs = tuple(_input(each, folders, origins) for each in run.inputs)
    outputs = tuple(replace(each, dataset=relation_name(each.dataset, folders)) for each in run.outputs)
    same = (inputs, outputs) == (run.inputs, run.outputs)
    return run if same else replace(run, inputs=inputs, outputs=outputs)


def _input(read: RunInput, folders: Container[str], origins: Mapping[str, str]) -> RunInput:
    name = relation_name(read.dataset, folders)
    options = tuple(each for each in read.options if each[0] != KEPT_FROM)
    return replace(read, dataset=origins.get(name, name), options=options)
