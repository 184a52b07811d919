"""One side of a comparison: what a run wrote, read from its files or, where these are gone, from its plan once more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.records.opened import OpenedWrite
from govtool.app.records.opening import open_write
from govtool.app.records.unreadable import runs_beside_damage
from govtool.errors import GovtoolError
from govtool.records.plan.expressions import Attribute, Named
from govtool.records.plan.nodes import File, Project, Relation
from govtool.records.plan.types import Field, Struct
from govtool.records.replay.compare import doubts_of

if TYPE_CHECKING:
    from govtool.model.run import Run
    from govtool.store import Commit, Reader

WRITTEN = "written"
AGAIN = "evaluated again"
_RECORDS = "govtool run --records records its rows"
_KEEPS = "[spark] row_digests = true records what an evaluation of the plan can be checked by"


@dataclass(frozen=True, slots=True)
class OutputSide:
    """The rows that a run wrote.

    Attributes:
        run: The run.
        dataset: The output.
        write: Its plan; None if it is not recorded.
        rows: Its rows; None if they are not known.
        how: How they were read.
        why: Why they are not known, or not certain.
    """

    run: Run
    dataset: str
    write: OpenedWrite | None = None
    rows: Relation | None = None
    how: str = ""
    why: str = ""


def output_side(store: Reader, commit: Commit, run: Run, dataset: str, folder: Path) -> OutputSide:
    """Read what a run wrote.

    Args:
        store: The store.
        commit: Records are those of this commit.
        run: The run.
        dataset: The output.
        folder: A folder for rows that are evaluated again.
    """
    side = OutputSide(run, dataset)
    known, unreadable = runs_beside_damage(store, commit)
    recorded = [each for each in known if each.run == run.id and each.output == dataset]
    lost = next((each for each in unreadable if each.run.id == run.id), None)
    if not recorded and lost is not None:
        return replace(side, why=lost.why())
    if not recorded:
        return replace(side, why=f"no rows of {run.id} are recorded: {_RECORDS}")
    try:
        write = open_write(store, commit, recorded[0])
        if write.output is not None:
            return replace(side, write=write, rows=write.output, how=WRITTEN)
        return _evaluated(replace(side, write=write), write, folder)
    except GovtoolError as error:
        return replace(side, why=f"{run.id}: {error.message}")


def _evaluated(side: OutputSide, write: OpenedWrite, folder: Path) -> OutputSide:
    """Rows of a plan, where the files that it wrote are gone."""
    gone = f"the files that {side.run.id} wrote are gone, or were written again"
    if write.lineage.refused:
        first = write.lineage.refused[0]
        return replace(side, why=f"{gone}, and so is what it read: {first.file} {first.reason}; {_KEEPS}")
    doubts = doubts_of(write.lineage, write.plan.root)
    if doubts:
        return replace(side, why=f"{gone}, and its plan does not determine its rows: {doubts[0]}; {_KEEPS}")
    rows = _kept(write, side.dataset, folder)
    return _checked(replace(side, rows=rows, how=AGAIN), gone, folder)


def _kept(write: OpenedWrite, dataset: str, folder: Path) -> Relation:
    """The rows of a plan in a Parquet file."""
    import pyarrow.parquet as pq

    visible = write.lineage.stage.segment.visible
    columns = tuple(Named(column, column.id, column.name) for column in visible)
    table = write.executor.arrow(Project(write.lineage.stage.segment.node, columns))
    file = folder / "rows.parquet"
    pq.write_table(table.rename_columns([column.name for column in visible]), file)
    facts = file.stat()
    own: tuple[Attribute, ...] = tuple(write.lineage.ids.attribute(each.name, each.type) for each in visible)
    schema = Struct(tuple(Field(each.name, each.type) for each in visible))
    files = (File(0, file.as_uri(), facts.st_size, facts.st_mtime_ns // 1_000_000),)
    return Relation(0, dataset, "parquet", files, own, schema)


def _forms(folder: Path) -> Iterator[Path]:
    """The rows as they are, and with timestamps as Spark's own (INT96) are read: without their zone, UTC."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    yield folder / "rows.parquet"
    table = pq.read_table(folder / "rows.parquet")
    plain = [
        field.with_type(pa.timestamp(field.type.unit)) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    if plain != list(table.schema):
        pq.write_table(table.cast(pa.schema(plain)), folder / "plain.parquet")
        yield folder / "plain.parquet"


def _checked(side: OutputSide, gone: str, folder: Path) -> OutputSide:
    """Compare rows that were evaluated again with what the run recorded of those that it wrote."""
    from govtool.app.datasets.row_digest import digest_rows

    recorded = next((each for each in side.run.outputs if each.dataset == side.dataset), None)
    digest = recorded.row_digest if recorded is not None else ""
    if not digest:
        return replace(side, why=f"{gone}: its plan was evaluated again, unchecked; {_KEEPS}")
    if digest in (digest_rows([file], folder) for file in _forms(folder)):
        return replace(side, how=f"{AGAIN}, equal to the recorded digest")
    return replace(side, rows=None, why=f"{gone}, and its plan gives other rows than those of the recorded digest")
