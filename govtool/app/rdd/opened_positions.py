"""The positions that a run of an RDD program kept, opened: tables of pairs, and the files that they point into."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from govtool.app.rdd.lines import lines_of
from govtool.app.rdd.programs import leaves_of
from govtool.app.records.tables import read_positions, read_stored
from govtool.model.parquet import refusing_damage
from govtool.model.position_facts import RESULT
from govtool.model.positions import decode_positions
from govtool.model.token import ROW_BITS
from govtool.records.execute.inputs import changed
from govtool.records.split_plans import relation_of
from govtool.records.trace.answer import RefusedFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from govtool.model.positions import StoredPositions
    from govtool.model.records import RecordRun
    from govtool.records.plan.nodes import Relation
    from govtool.records.sidecar.lookup import SidecarUse
    from govtool.records.trace.segment import Exactness
    from govtool.store import Commit, Reader

    Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OpenedPositions:
    """A run whose positions were kept.

    Attributes:
        run: What the store holds of it.
        stored: The positions.
        labels: Of the operators, by number.
        leaves: The text files that it read, by number.
        output: The files that it wrote, if they are still what was written.
        refused: Input files that are gone or have changed.
        texts: Text of records that no file has, by number and id.
        sidecars: None are used.
    """

    run: RecordRun
    stored: StoredPositions
    labels: Mapping[int, str]
    leaves: Mapping[int, Relation]
    output: Relation | None
    refused: tuple[RefusedFile, ...]
    texts: Mapping[int, Mapping[int, str]]
    sidecars: SidecarUse
    engines: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The output, or the run whose rows went to the driver."""
        return self.run.output or self.run.run

    def tables(self) -> Iterator[tuple[int, int, Exactness, str, Ids]]:
        """Yield node, stop, exactness, reason and pairs."""
        for (node, stop, exactness, reason), pairs in zip(self.stored.facts["tables"], self.stored.pairs, strict=True):
            yield node, stop, exactness, reason, pairs

    @property
    def coarse(self) -> list[tuple[int, list[int], str]]:
        """Operators for which every input counts, with what they read and the reason."""
        return [(node, stops, reason) for node, stops, reason in self.stored.facts["coarse"]]

    def is_source(self, node: int) -> bool:
        """True of an operator that reads no other."""
        made = {table[0] for table in self.tables()} | {node for node, _, _ in self.coarse}
        return node != RESULT and node not in made

    def every(self, node: int) -> Ids:
        """All records of a source, or of a boundary as far as the result comes from them."""
        import numpy as np

        if node in self.leaves:
            gone = {each.file for each in self.refused}
            there = [file for file in self.leaves[node].files if file.uri not in gone]
            return sorted_ids(file.ordinal << ROW_BITS | row for file in there for row, _ in enumerate(lines_of(file)))
        parts = [pairs[:, 0] for own, _, _, _, pairs in self.tables() if own == node]
        parts += [pairs[:, 1] for _, stop, _, _, pairs in self.tables() if stop == node]
        return np.unique(np.concatenate([sorted_ids(self.texts.get(node, ())), *parts]))

    def place_name(self, node: int) -> str:
        """The dataset of a place, or the operator."""
        if node in self.leaves:
            return self.leaves[node].dataset
        if node == RESULT:
            return self.name
        return f"rows-{node}" if self.is_source(node) else self.labels[node]


def open_positions(store: Reader, commit: Commit, run: RecordRun) -> OpenedPositions | None:
    """Read the positions of a run's records; None if none were kept, or they were removed from the store.

    Raises:
        StoreError: A fragment cannot be read.
        IntegrityError: A fragment is not what was written.
    """
    from govtool.records.sidecar.lookup import SidecarUse

    data = read_positions(store, commit, run)
    if data is None:
        return None
    body, _ = read_stored(store, commit, run)
    leaves = {leaf.leaf: leaf for leaf in leaves_of(run)}
    written = relation_of(run.written, run.output)
    stored = decode_positions(data)
    labels = _labels(body)
    _require_places(stored, labels, leaves)
    return OpenedPositions(
        run=run,
        stored=stored,
        labels=labels,
        leaves=leaves,
        output=written if written is not None and not changed([written]) else None,
        refused=tuple(RefusedFile(each.dataset, each.uri, each.reason) for each in changed(leaves.values())),
        texts={node: {int(number): text for number, text in own} for node, own in stored.facts["texts"]},
        sidecars=SidecarUse(),
    )


@refusing_damage("a stored program cannot be read")
def _labels(body: str) -> dict[int, str]:
    """The operators of a program, by number."""
    return {int(entry["number"]): str(entry["label"]) for entry in json.loads(body)["nodes"]}


@refusing_damage("positions do not fit their program")
def _require_places(stored: StoredPositions, labels: Mapping[int, str], leaves: Mapping[int, Relation]) -> None:
    """Refuse positions of operators and files that the program does not have.

    Raises:
        IntegrityError: There are such.
    """
    facts = stored.facts
    steps = [*((node, (stop,)) for node, stop, _, _ in facts["tables"]), *((n, s) for n, s, _ in facts["coarse"])]
    named = {number for node, stops in steps for number in (node, *stops)} - {RESULT}
    if unknown := named - labels.keys():
        raise ValueError(f"no operator has the number {min(unknown)}")
    if not leaves.keys() <= labels.keys() or any(node in leaves for node, _ in steps):
        raise ValueError("an input is no source of the program")
    stored.require_files({number: [file.ordinal for file in leaf.files] for number, leaf in leaves.items()})


def sorted_ids(numbers: Iterable[int]) -> Ids:
    """Return positions as an array."""
    import numpy as np

    return np.array(sorted(numbers), np.int64)
