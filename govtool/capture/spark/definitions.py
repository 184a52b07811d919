"""What commands do to the catalog, as the same facts as SQL text (``govtool/capture/sql``): a table is declared,
dropped, renamed; a column is added or renamed. What puts an earlier state of a table back is a break: where that came
from is in an earlier run, and not in this one.
"""

from __future__ import annotations

from dataclasses import dataclass

from govtool.capture.spark.identity import DatasetPlace
from govtool.model import ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.model.copies import copied

RESTORED = "break.restored"


@dataclass(frozen=True, slots=True)
class Defined:
    """The effect of a command on one dataset."""

    does: str
    """``create``, ``clone``, ``drop``, ``rename``, ``truncate``, ``add``, ``rename_column``, ``restore``, ``call``."""
    place: DatasetPlace | None
    """The state afterwards, or None if it is gone."""
    kind: str
    """As in `Statement`."""
    mode: str
    """As in `Derivation`; empty: nothing is said of columns."""
    columns: tuple[tuple[str, str | None], ...] = ()
    """Paths and types."""
    source: DatasetPlace | None = None
    """The earlier name, or the source of the copy."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Paths of the source, and of the place, that are the same."""
    breaks: tuple[tuple[str, str], ...] = ()
    """Codes and messages."""


def definition(defined: Defined, statement: Statement) -> Derivation:
    """The derivation of what a command does.

    Args:
        defined: With a place and a mode.
        statement: The evidence.

    Raises:
        ValueError: It has no place.
    """
    place, source = defined.place, defined.source
    if place is None:
        raise ValueError("nothing is defined")
    edges: tuple[Edge, ...] = ()
    complete = True
    if source is not None and defined.does == "rename_column":
        edges = tuple(Edge(ColumnRef(source.id, old), new, EdgeKind.IDENTITY) for old, new in defined.pairs)
    elif source is not None:
        complete = bool(defined.pairs)
        edges = copied(source.id, [path for path, _ in defined.pairs], complete=complete)
    return Derivation(
        target=place.id,
        target_kind=place.kind,
        mode=defined.mode,
        statement=statement,
        columns=tuple(OutputColumn(path, type_) for path, type_ in defined.columns),
        columns_complete=complete and defined.mode != "update",
        edges=edges,
        status="understood" if complete else "partial",
        namespace=place.name.namespace,
    )
