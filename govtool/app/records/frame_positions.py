"""Positions of the rows that DataFrames wrote: from a job's spool into a store, and opened again for a trace.

In a spool rows of files are named by bits of a hash of the file, and written rows by task and place; a store has the
ordinals of both. Where the written files are not those of the tasks, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from govtool.app.records.writes import ProcessActions, process_id
from govtool.model.parquet import refusing_damage
from govtool.model.token import ROW_BITS
from govtool.records.execute.csv_files import BLANKS
from govtool.records.trace.positions import RESULT, KeptTrace, PairTable
from govtool.redaction import failure_of
from govtool.spark.live.records.packing import PARTITION_BITS
from govtool.spark.live.spool import POSITIONS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from govtool.app.rdd.programs import ProgramNotes
    from govtool.app.records.tables import RecordTables
    from govtool.model.positions import StoredPositions
    from govtool.records.plan.nodes import Relation
    from govtool.records.plan.tree import Node
    from govtool.records.trace.normal import Ids
    from govtool.records.trace.segment import Leaf

    Ordinals = NDArray[np.int64]

Json = dict[str, Any]
_FILE = (1 << 64 - ROW_BITS) - 1
_ROW = (1 << ROW_BITS) - 1
_PART = re.compile(r"part-(\d{5,})-[^.]*-c(\d+)\.")
"""Names of files that a task wrote in the order of its rows: task and number."""
_SORTED_PART = re.compile(r"part-(\d{5,})-[^._]*(?:_(\d{5,}))?\.c(\d+)\.")
"""Those of partitions and buckets, to which the rows of a task are sorted first: task, bucket and number; each folder
and bucket begins anew at 0."""
Place = tuple[int, str, int]
"""Task, folder within the output, and bucket; -1: none."""
_SLACK = 0.005
"""Seconds by which the time of a run, in whole milliseconds, may differ."""


class NotKept(ValueError):
    """The positions of a write cannot be kept, with the reason."""


# ---- from a spool ---------------------------------------------------------------------------------------------------


def add_frame_positions(
    tables: RecordTables, spool: Path, processes: Sequence[ProcessActions], notes: ProgramNotes
) -> None:
    """Add the positions of what DataFrames wrote to the tables of their runs.

    Args:
        tables: Has the runs.
        spool: The private folder of a job's spool.
        processes: Its actions.
        notes: Takes remarks.
    """
    folder = spool / POSITIONS
    for process in processes:
        lines = list(_lines(folder, process.process))
        numbers = {line["key"]: line["n"] for line in lines if line["e"] == "written"}
        for line in lines:
            if line["e"] != "positions":
                continue
            if "break" in line:
                notes.problems.append("positions of a write are not kept: the list of its inputs' files is too large")
                continue
            if "key" not in line:
                notes.problems += _refusals(process, line)
                continue
            for name in process.runs.get(int(numbers.get(line["key"], -1)), ()):
                if name in tables.runs and tables.runs[name].output:
                    _add(tables, name, line, folder, notes)


def _lines(folder: Path, process: str) -> Iterator[Json]:
    """The lines about positions of a process; none where a job kept none."""
    for file in sorted(folder.glob(f"{process_id(process)}-*.jsonl")):
        with file.open(encoding="utf-8", errors="replace") as found:
            for text in found:
                try:
                    line = json.loads(text)
                except (ValueError, RecursionError):  # it was cut off
                    continue
                if isinstance(line, dict) and "e" in line:
                    yield line


def _refusals(process: ProcessActions, line: Json) -> list[str]:
    """The remark on a write that was heard of without positions: on the first run that began while it was under way."""
    from datetime import datetime

    begun = sorted(
        (datetime.fromisoformat(action.run.started).timestamp(), action.run.id)
        for action in process.executed
        if action.run.outputs and action.run.started
    )
    first, last = line["from"] - _SLACK, line["to"] + _SLACK
    name = next((run for started, run in begun if first <= started <= last), "a write")
    return [f"positions of {name} are not kept: {line['missing']}"]


def _add(tables: RecordTables, name: str, line: Json, folder: Path, notes: ProgramNotes) -> None:
    from govtool.model.positions import encode_positions

    try:
        found = _stored(tables, name, line, folder)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        why = str(error) if isinstance(error, NotKept) else failure_of(error)
        notes.problems.append(f"positions of {name} are not kept: {why}")
        return
    data = encode_positions(found)
    tables.positions[name] = data
    tables.runs[name] = replace(tables.runs[name], positions=hashlib.sha256(data).hexdigest())
    pairs = sum(map(len, found.pairs))
    notes.costs.append(
        f"positions of {name}: {pairs:,} pairs in {len(data):,} bytes; the query ran with them for "
        f"{line['seconds']} s, and its rows were then written in {line['write_seconds']} s"
    )


def _stored(tables: RecordTables, name: str, line: Json, folder: Path) -> StoredPositions:
    from govtool.model.positions import from_packed

    if "missing" in line:
        raise NotKept(line["missing"])
    data = (folder / Path(line["file"]).name).read_bytes()
    if hashlib.sha256(data).hexdigest() != line["sha256"]:
        raise NotKept("the file is not what was written")
    places = _Places(tables, name, line)
    packed, begin, stored = [], 0, []
    for node, stop, size, exactness, reason in line["tables"]:
        packed.append(places.translated(node, stop, data[begin : begin + size]))
        begin += size
        stored.append([node, stop, exactness, reason])
    facts = {
        "tables": stored,
        "coarse": [],
        "texts": [],
        "labels": line["labels"],
        "sources": sorted(places.leaves.items()),
        "why": line["why"],
        "seconds": line["seconds"],
        "write_seconds": line["write_seconds"],
    }
    return from_packed(facts, packed)


class _Places:
    """Numbers of a spool as those of the recorded plan: leaves, files, written rows."""

    def __init__(self, tables: RecordTables, name: str, line: Json) -> None:
        from govtool.records.split_plans import put_together, relation_of

        run = tables.runs[name]
        values = tables.private[name].values if name in tables.private else None
        plan = put_together(tables.plans[run.plan].body, run.listings, values, dict(run.inputs))
        known = {first: leaf for leaf in leaves(plan.root) if (first := first_column(leaf)) is not None}
        self.leaves: dict[int, int] = {}
        self._sources: dict[int, Json] = {}
        self._files: dict[int, Mapping[int, int]] = {}
        for source in line["sources"]:
            leaf = known.get(source["leaf"])
            if leaf is None:
                raise NotKept("an input is not in the recorded plan")
            self.leaves[source["stop"]] = leaf.leaf
            self._sources[source["stop"]] = source
            if source["kind"] == "files":
                self._files[source["stop"]] = _ordinals(source["files"], leaf)
        written = relation_of(run.written, run.output)
        if written is None:
            raise NotKept("the written files are not known")
        self._tasks = _Tasks(written, [((task, folder, bucket), rows) for task, folder, bucket, rows in line["rows"]])

    def translated(self, node: int, stop: int, data: bytes) -> bytes:
        """Pairs of a spool as pairs of a store."""
        import numpy as np

        pairs = np.frombuffer(data, np.int64).reshape(-1, 2).copy()
        if node == RESULT:
            pairs[:, 0] = self._tasks.rows(pairs[:, 0])
        if stop in self._files:
            pairs[:, 1] = _translated(pairs[:, 1], self._files[stop])
        elif "rows" in self._sources.get(stop, {}):
            pairs[:, 1] = _driver_rows(pairs[:, 1], self._sources[stop]["rows"])
        return pairs.tobytes()


def leaves(root: Node) -> list[Leaf]:
    """The inputs of a plan whose rows have ids."""
    from govtool.records.plan.nodes import LocalRows, Range, Relation
    from govtool.records.plan.tree import walk_nodes

    return [node for node in walk_nodes(root) if isinstance(node, (Relation, LocalRows, Range))]


def first_column(leaf: Leaf) -> int | None:
    """The id of the first column of an input."""
    from govtool.records.plan.nodes import outputs

    return next((column.id for column in outputs(leaf)), None)


def _ordinals(files: Sequence[Sequence[Any]], leaf: Leaf) -> dict[int, int]:
    """Ordinals in the recorded listing by the bits that stand for files."""
    from govtool.records.execute.places import plain_uri
    from govtool.records.plan.nodes import Relation

    assert isinstance(leaf, Relation)
    listed = {plain_uri(file.uri): file.ordinal for file in leaf.files}
    return {bits: listed[plain_uri(uri)] for bits, uri in files if plain_uri(uri) in listed}


def _translated(ids: Ordinals, numbers: Mapping[int, int]) -> Ordinals:
    """Ids with the ordinals of files in place of their numbers in a spool.

    Raises:
        NotKept: A number is not known.
    """
    import numpy as np

    upper, lower = (ids >> ROW_BITS) & _FILE, ids & _ROW
    known, places = np.unique(upper, return_inverse=True)
    if not set(known.tolist()) <= set(numbers):
        raise NotKept("a file was read that was not listed before")
    others = np.array([numbers[number] for number in known.tolist()], np.int64)
    return (others[places] << ROW_BITS) | lower if len(known) else ids


def _driver_rows(ids: Ordinals, counts: Sequence[Sequence[int]]) -> Ordinals:
    """Places among all rows of the driver, from those in each partition."""
    import numpy as np

    begin, starts = 0, {}
    for partition, rows in counts:
        starts[partition] = begin
        begin += rows
    offsets = np.array([starts[number] for number in (ids >> PARTITION_BITS).tolist()], np.int64)
    return offsets + (ids & ((1 << PARTITION_BITS) - 1)) if len(ids) else ids


class _Tasks:
    """Written rows by the task that wrote them.

    Args:
        written: The written files.
        counts: Where each task wrote how many rows, in the order in which it numbered them.

    Raises:
        NotKept: The files are not those of the tasks.
    """

    def __init__(self, written: Relation, counts: Sequence[tuple[Place, int]]) -> None:
        depth = max((folder.count("/") + 1 for (_, folder, _), _ in counts if folder), default=0)
        is_sorted = depth > 0 or any(bucket >= 0 for (_, _, bucket), _ in counts)
        found: dict[Place, list[tuple[int, int, int]]] = defaultdict(list)
        for file in written.files:
            place, number = _place_of(unquote(file.uri), depth, is_sorted)
            found[place].append((number, file.ordinal, _rows_of(written, file.uri)))
        if not {place for place, files in found.items() if any(rows for _, _, rows in files)} <= {p for p, _ in counts}:
            raise NotKept("there are files of other tasks, partitions or buckets than wrote rows")
        self._files: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for place, rows in counts:
            files = sorted(found.get(place, []))
            if len({number for number, _, _ in files}) < len(files):
                raise NotKept("a task wrote several files at once, so that the places of its rows are not known")
            _require_rows(files, rows)
            self._files[place[0]] += [(ordinal, own if own >= 0 else rows) for _, ordinal, own in files]

    def rows(self, ids: Ordinals) -> Ordinals:
        """File ordinal and row of written rows, from task and place."""
        import numpy as np

        made = np.empty_like(ids)
        tasks, places = ids >> PARTITION_BITS, ids & ((1 << PARTITION_BITS) - 1)
        for task in np.unique(tasks).tolist():
            own = np.flatnonzero(tasks == task)
            starts = np.cumsum([0, *(rows for _, rows in self._files[task])])
            at = np.searchsorted(starts, places[own], "right") - 1
            ordinals = np.array([ordinal for ordinal, _ in self._files[task]], np.int64)
            made[own] = (ordinals[at] << ROW_BITS) | (places[own] - starts[at])
        return made


def _place_of(path: str, depth: int, is_sorted: bool) -> tuple[Place, int]:
    """Where the rows of a file come from, and its number there, from its name.

    Raises:
        NotKept: The name does not show it.
    """
    *folders, name = path.split("/")
    found = (_SORTED_PART if is_sorted else _PART).match(name)
    if found is None:
        raise NotKept("the names of the written files do not show which task wrote them")
    if not is_sorted:
        return (int(found[1]), "", -1), int(found[2])
    bucket = -1 if found[2] is None else int(found[2])
    return (int(found[1]), "/".join(folders[len(folders) - depth :]), bucket), int(found[3])


def _require_rows(files: Sequence[tuple[int, int, int]], rows: int) -> None:
    """Refuse files of a task that do not have its rows.

    Raises:
        NotKept: They do not.
    """
    whole = sum(each[2] for each in files)
    if (rows and not files) or (files and whole >= 0 and whole != rows) or (whole < 0 and len(files) > 1):
        raise NotKept("the written files do not have the rows of the tasks that wrote them")


def _rows_of(written: Relation, uri: str) -> int:
    """The rows of a written file; -1 where they are not counted: of JSON and ORC.

    Raises:
        NotKept: A header or a value of several lines would give rows other places, and the file cannot be looked into.
    """
    from govtool.records.execute.inputs import local_path

    path = local_path(uri)
    if written.format in ("csv", "text"):
        if path is None or path.suffix not in (".csv", ".txt"):
            raise NotKept(f"lines of written files of format {written.format} cannot be counted")
        with path.open(encoding="latin-1") as source:
            return sum(1 for line in source if written.format == "text" or line.strip(BLANKS))
    if written.format != "parquet" or path is None:
        return -1
    import pyarrow.parquet as pq

    return int(pq.ParquetFile(path).metadata.num_rows)


# ---- in a store -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeptPositions:
    """The positions of a write, as a store has them.

    Attributes:
        stored: Pairs and facts.
    """

    stored: StoredPositions

    @refusing_damage("positions do not fit their plan")
    def require_fit(self, root: Node) -> None:
        """Refuse positions of inputs and files that the plan does not read.

        Args:
            root: The recorded plan, over all files that were read.

        Raises:
            IntegrityError: There are such.
        """
        from govtool.records.plan.nodes import Relation

        facts = self.stored.facts
        known = {leaf.leaf: leaf for leaf in leaves(root)}
        inputs = {stop: known[leaf] for stop, leaf in facts["sources"]}
        if any(node in inputs for node, _, _, _ in facts["tables"]):
            raise ValueError("an input comes from something")
        self.stored.require_files(
            {
                stop: [file.ordinal for file in leaf.files] if isinstance(leaf, Relation) else [0]
                for stop, leaf in inputs.items()
            }
        )

    def trace(self, root: Node, ids: Ids) -> KeptTrace:
        """The positions as the stages of a trace.

        Args:
            root: The recorded plan, over the files that are still what was read.
            ids: New columns' ids.
        """
        from govtool.records.trace.segment import Grade

        facts = self.stored.facts
        known = {leaf.leaf: leaf for leaf in leaves(root)}
        inputs = {stop: known[leaf] for stop, leaf in facts["sources"]}
        tables = tuple(
            PairTable(node, stop, _there(pairs, inputs.get(stop)), Grade(exactness, reason))
            for (node, stop, exactness, reason), pairs in zip(facts["tables"], self.stored.pairs, strict=True)
        )
        return KeptTrace(tables, dict(map(tuple, facts["labels"])), inputs, ids)


def _there(pairs: Ordinals, leaf: Leaf | None) -> Ordinals:
    """Pairs without those of rows in files that are gone.

    Raises:
        IntegrityError: A row is beyond the end of a file that is as it was read (``store.corrupt-fragment``).
    """
    import numpy as np

    from govtool.records.plan.nodes import Relation

    if not isinstance(leaf, Relation):
        return pairs
    there = pairs[np.isin(pairs[:, 1] >> ROW_BITS, [file.ordinal for file in leaf.files])]
    _require_rows_within(there[:, 1], leaf)
    return there


def _require_rows_within(origins: Ordinals, leaf: Relation) -> None:
    """Refuse places beyond the end of a Parquet file on this machine; the rows of others are not counted."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from govtool.model.positions import require_row_within
    from govtool.records.execute.inputs import local_path

    if leaf.format != "parquet":
        return
    last = np.zeros(max((file.ordinal for file in leaf.files), default=0) + 1, np.int64)
    np.maximum.at(last, origins >> ROW_BITS, origins & _ROW)
    touched = set(np.unique(origins >> ROW_BITS).tolist())
    for file in leaf.files:
        path = local_path(file.uri) if file.ordinal in touched else None
        rows = 1 << ROW_BITS
        with contextlib.suppress(OSError, pa.ArrowException):  # it is said by what reads the rows
            rows = pq.read_metadata(path).num_rows if path is not None else rows
        require_row_within(int(last[file.ordinal]), rows)
