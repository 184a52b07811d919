"""The names by which datasets of recorded runs are meant: their own, ends of them, paths; and by their files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.records.unreadable import each_name
from govtool.app.runs.lookup import is_named

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.records.execute.places import Place
    from govtool.records.plan.nodes import Relation

FilesOf = Callable[["RecordRun"], "Iterator[tuple[str, set[Place]]]"]
"""The datasets that a run read or wrote, with their files."""


def is_called(name: str, text: str) -> bool:
    """Return whether a dataset is meant by a text: its name, the end of it, or a path; of several, one of them."""
    names = each_name([name])
    if any(is_named(each, text) for each in names):
        return True
    from govtool.app.datasets.places import path_id

    is_path = "/" in text or Path(text).exists()
    # A job of Spark Connect leaves paths as it wrote them: they are those of its server's folder.
    return is_path and (path_id(text) in names or name == f"file:{text}")


def inputs_of(run: RecordRun) -> tuple[str, ...]:
    """The datasets that a write read."""
    return tuple(dict.fromkeys(dataset for _, dataset in run.inputs))


def input_name(run: RecordRun, text: str) -> str:
    """The input of a write that a text names."""
    return next((name for name in inputs_of(run) if is_called(name, text)), text)


def name_among(run: RecordRun, text: str, readers: Sequence[RecordRun]) -> str:
    """The input of a run that a text names, or that others name so: a table may be read by its name and by its path."""
    text = table_at(readers, text, read_by)
    name = input_name(run, text)
    return name if name in inputs_of(run) else next(_named_otherwise(run, _files_read(readers, text)), text)


def table_at(known: Iterable[RecordRun], text: str, files_of: FilesOf) -> str:
    """The table whose files lie in the folder that a text names, if nothing recorded is called so; else the text."""
    from govtool.app.datasets.places import path_id

    if "/" not in text or "=" in text.rpartition("/")[2]:  # a partition is not the table
        return text
    known, tables, folder = list(known), dict[str, None](), f"{path_id(text)}/"
    for each in known:
        if any(is_called(name, text) for name in (inputs_of(each) if files_of is read_by else (each.output,)) if name):
            return text
    for each in known:
        for name, files in files_of(each):
            if "/" not in name and files and all(uri.startswith(folder) for uri, _, _ in files):
                tables[name] = None
    return next(iter(tables)) if len(tables) == 1 else text


def written_by(run: RecordRun) -> Iterator[tuple[str, set[Place]]]:
    """The output of a run with its files."""
    from govtool.records.execute.places import place_of
    from govtool.records.split_plans import relation_of

    left = relation_of(run.written, run.output)
    if run.output:
        yield run.output, set() if left is None else {place_of(file) for file in left.files}


def readers_by_another_name(
    known: Iterable[RecordRun], readers: Sequence[RecordRun], dataset: str
) -> Iterator[RecordRun]:
    """Runs that read what others read as a dataset, and call it otherwise."""
    files, names = _files_read(readers, dataset), {each.run for each in readers}
    folders = {json.dumps(uri.rpartition("/")[0])[1:-1] for uri, _, _ in files}
    for each in known:
        is_near = each.run not in names and not each.program and any(folder in each.listings for folder in folders)
        if is_near and any(_named_otherwise(each, files)):
            yield each


def _files_read(readers: Iterable[RecordRun], dataset: str) -> set[Place]:
    return {file for each in readers for name, files in read_by(each) if is_called(name, dataset) for file in files}


def _named_otherwise(run: RecordRun, files: set[Place]) -> Iterator[str]:
    """The inputs of a run that are some of these files, and no others."""
    return (name for name, own in read_by(run) if own and own <= files)


def read_by(run: RecordRun) -> Iterator[tuple[str, set[Place]]]:
    """The inputs of a run with their files."""
    from govtool.records.execute.places import place_of

    return ((name, {place_of(file) for file in leaf.files}) for name, leaf in leaves_read(run))


def leaves_read(run: RecordRun) -> Iterator[tuple[str, Relation]]:
    """The inputs of a run with their listings; one that is read twice is there twice."""
    from govtool.records.execute.inputs import relations
    from govtool.records.plan import codec

    leaves = {leaf.leaf: leaf for leaf in relations(codec.loads(run.listings).root)}
    return ((name, leaves[number]) for number, name in run.inputs if number in leaves)
