"""A family of workflows: its modules, its inputs as files, and its outputs as rows that can be compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from govtool.workflow.modules.workflow import Workflow

Spec = Mapping[str, Any]
"""A workflow with all of its data, in the form of ``--spec``."""


@dataclass(frozen=True, slots=True, order=True)
class OutputRow:
    """A row of an output: its value, under a key."""

    exec: int
    relation: str
    key: tuple[Any, ...]
    value: Any


class Family(Protocol):
    """What the two families have in common."""

    name: str

    def flow(self, spec: Spec) -> Workflow:
        """The workflow of a spec."""

    def write(self, spec: Spec, folder: Path, without: Collection[str] = ()) -> None:
        """Write inputs and initial state, but for the rows of some tokens."""

    def records(self, spec: Spec) -> Mapping[str, Sequence[str]]:
        """The tokens of the rows of each file that ``write`` writes, in order; files as below its folder."""

    def rows(self, execution: int, relations: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[OutputRow]:
        """Outputs of an execution, by the names of relations."""

    def stops(self, rows: Sequence[OutputRow]) -> bool:
        """Whether these outputs of an execution end the run."""

    def by_hand(self, spark: Any, spec: Spec, inputs: Path, folder: Path) -> Any:
        """The same program without modules and workflows: a callable that runs one execution."""


def write_parquet(place: Path, columns: Mapping[str, Any], rows: Sequence[Sequence[Any]]) -> None:
    """Rows as one Parquet file; columns by name with their Arrow types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place.parent.mkdir(parents=True, exist_ok=True)
    arrays = [pa.array([row[number] for row in rows], kind) for number, kind in enumerate(columns.values())]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(columns)), place)


def read_parquet(place: Path) -> list[dict[str, Any]]:
    """All rows of a file, or of the files of a folder."""
    import pyarrow.parquet as pq

    files = [place] if place.is_file() else sorted(place.glob("*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
