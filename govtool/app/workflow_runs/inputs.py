"""The inputs of executions, found in a folder by the names of relations.

    DIR/3/Requests.csv            an input of execution 3
    DIR/Prices.parquet            an input of every execution that has none of its own
    DIR/state/M_dealer1.Cars.csv  the initial version of a state relation; or state/Cars.csv for every module's

Formats: Parquet (a file or a folder), CSV with a header, JSON lines.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from govtool.errors import UnknownNameError, UsageError
from govtool.model.workflow_run import BoundaryRelation, RelationFile

_SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json"}


@dataclass(frozen=True, slots=True)
class InputFolder:
    """A folder of inputs."""

    root: Path

    def check(self) -> None:
        """Refuse a folder that is none.

        Raises:
            UsageError: ``usage.inputs``.
        """
        if not self.root.is_dir():
            raise UsageError("there is no such folder of inputs", code="usage.inputs", location=str(self.root))

    def executions(self) -> tuple[int, ...]:
        """The executions that have a folder of their own."""
        return tuple(sorted(int(each.name) for each in self.root.iterdir() if each.is_dir() and _is_number(each.name)))

    def find(self, name: str, execution: int) -> BoundaryRelation:
        """An input of an execution.

        Raises:
            UnknownNameError: There is none (``usage.missing-input``), with the nearest names.
            UsageError: There are several files of the name (``usage.inputs``).
        """
        folders = (self.root / str(execution), self.root)
        found = next(filter(None, (_relation(folder, name) for folder in folders)), None)
        if found is not None:
            return found
        known = [known for folder in folders for known in _names(folder)]
        raise UnknownNameError(
            f"there is no input {name} for execution {execution}",
            code="usage.missing-input",
            location=str(self.root),
            nearest=tuple(difflib.get_close_matches(name, known, 3, 0.5)),
            hint=f"write {self.root / str(execution) / name}.parquet, or {self.root / name}.parquet for all executions",
        )

    def check_all(self, names: Iterable[str], executions: range) -> None:
        """Refuse executions whose inputs are not there, before the first of them runs.

        Raises:
            UsageError: One is missing (``usage.missing-input``).
        """
        wanted = tuple(names)
        for execution in executions:
            for name in wanted:
                self.find(name, execution)

    def initial(self, slot: str) -> BoundaryRelation | None:
        """The initial version of a state relation; None if there is no file of it."""
        folder = self.root / "state"
        return _relation(folder, slot) or _relation(folder, slot.rpartition(".")[2])


def listing(place: Path) -> tuple[RelationFile, ...]:
    """The data files of a relation: of a folder, or the file itself."""
    files = [place] if place.is_file() else sorted(_data_files(place))
    stats = [(file, file.stat()) for file in files]
    return tuple(RelationFile(file.as_uri(), stat.st_size, stat.st_mtime_ns // 1_000_000) for file, stat in stats)


def _data_files(folder: Path) -> Iterator[Path]:
    for each in folder.iterdir():
        if each.name.startswith(("_", ".")):
            continue
        if each.is_dir():
            yield from _data_files(each)
        else:
            yield each


def _relation(folder: Path, name: str) -> BoundaryRelation | None:
    """The relation of a name in a folder.

    Raises:
        UsageError: Several files have the name (``usage.inputs``).
    """
    candidates = [(folder / f"{name}{suffix}", kind) for suffix, kind in _SUFFIXES.items()]
    candidates.append((folder / name, "parquet"))
    there = [(path, kind) for path, kind in candidates if path.is_file() or (path.is_dir() and kind == "parquet")]
    if len(there) > 1:
        raise UsageError(
            f"several files are the relation {name}: {', '.join(path.name for path, _ in there)}",
            code="usage.inputs",
            location=str(folder),
        )
    if not there:
        return None
    path, kind = there[0]
    path = path.absolute()
    return BoundaryRelation(str(path), kind, "", listing(path))


def _names(folder: Path) -> Iterable[str]:
    if not folder.is_dir():
        return ()
    return (each.stem for each in folder.iterdir() if each.name != "state" and not _is_number(each.name))


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and name != "0" and not name.startswith("0")
