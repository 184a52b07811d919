"""Traces by positions that a run kept: pairs of ids of rows take the place of the plan's operators.

The stages are those of any trace: the rows of the written files, below them a table of pairs for each boundary, and at
the end the rows of inputs. So whatever can be done with a trace by the plan can be done with these.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.records.plan.expressions import Attribute, Call
from govtool.records.plan.nodes import File, LocalRows, Relation
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, LONG, Field, Struct
from govtool.records.trace.back import Stage
from govtool.records.trace.carrier import Carrier, Linked
from govtool.records.trace.normal import Ids
from govtool.records.trace.rules import RULES
from govtool.records.trace.segment import Grade, Leaf, LeafSource, Link, Segment, Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESULT = -1
"""The number of the written rows."""
_FEW = 1000
"""Pairs that are part of a plan; more are a file that it reads."""
KEPT = "kept positions"


@dataclass(frozen=True, slots=True)
class PairTable:
    """Pairs of ids of the rows of a boundary, or of the output, and of rows that they come from.

    Attributes:
        node: The number of the boundary; ``RESULT``: the output.
        stop: The number of the boundary or input below.
        pairs: An array of shape (pairs, 2).
        grade: How close they keep to the trace.
    """

    node: int
    stop: int
    pairs: NDArray[np.int64]
    grade: Grade = field(default_factory=Grade)


@dataclass(frozen=True)
class KeptTrace:
    """The positions of one write.

    Attributes:
        tables: Pairs, from the output down.
        labels: Operators of boundaries, by number.
        leaves: Inputs, by number.
        ids: New columns' ids.
    """

    tables: Sequence[PairTable]
    labels: Mapping[int, str]
    leaves: Mapping[int, Leaf]
    ids: Ids

    def stage(self, output: Relation) -> tuple[Stage, Attribute]:
        """The stage of the written rows, and the column that has their ids."""
        read = self._carrier.segment(output, frozenset())
        (source,) = read.sources
        assert isinstance(source, LeafSource)
        bare = Segment(read.node, output.columns, ())
        return Stage(self._linked(bare, RESULT, source.record)), source.record

    @cached_property
    def _carrier(self) -> Carrier:
        return Carrier(self.ids, RULES)

    def _linked(self, segment: Segment, node: int, own: Attribute) -> Segment:
        """A segment with links from a column of ids to what lies below."""
        return self._carrier.linked(segment, [self._link(each, own) for each in self.tables if each.node == node])

    def _link(self, table: PairTable, own: Attribute) -> Linked:
        above, below = self.ids.attribute("own", LONG), self.ids.attribute("origin", LONG)
        wanted = self.ids.attribute("wanted", LONG)

        def make() -> Segment:
            segment = Segment(_pairs(table, above, below), (), ())
            if table.stop in self.leaves:
                source: Source = LeafSource(self.leaves[table.stop], below)
                return Segment(segment.node, segment.visible, (source,))
            return self._linked(segment, table.stop, below)

        link = Link(self.labels.get(table.node, KEPT), make, Call("=", (above, wanted), BOOLEAN), table.grade)
        return Linked(link, ((wanted, own),))


def _pairs(table: PairTable, own: Attribute, origin: Attribute) -> Node:
    if len(table.pairs) <= _FEW:
        return LocalRows(0, (own, origin), tuple((int(one), int(other)) for one, other in table.pairs))
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = Path(_folder()) / f"{own.id}-{table.node}-{table.stop}-{id(table)}.parquet"
    pq.write_table(pa.table({"own": table.pairs[:, 0], "origin": table.pairs[:, 1]}), file)
    facts = file.stat()
    known = File(0, file.as_uri(), facts.st_size, facts.st_mtime_ns // 1_000_000)
    schema = Struct((Field("own", LONG), Field("origin", LONG)))
    return Relation(0, KEPT, "parquet", (known,), (own, origin), schema)


_folders: list[str] = []


def _folder() -> str:
    """A folder for tables of pairs, removed when the process ends."""
    if not _folders:
        _folders.append(tempfile.mkdtemp(prefix="govtool-positions-"))
        atexit.register(shutil.rmtree, _folders[0], ignore_errors=True)
    return _folders[0]
