"""A write, as the text of a plan states it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from govtool.capture.spark.identity import DatasetPlace
from govtool.capture.spark.plantext import lists
from govtool.capture.spark.plantext.tree import Operator

TABLE = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")
"""The name of a table in the arguments of a command."""


@dataclass(frozen=True, slots=True)
class PlanWrite:
    """A dataset is written."""

    place: DatasetPlace
    kind: str
    """As in `Statement`: ``insert``, ``create_table_as``, ``create_view``, ``merge`` …"""
    save_mode: str
    """As in `RunOutput`."""
    mode: str
    """As in `Derivation`."""
    query: Operator | None
    """The written relation; None where another execution of the same action has it, or it is not known."""
    columns: tuple[str, ...] | None = None
    """Names, by position; None: those of the query."""
    hidden: int = 0
    """Names at the end that the text leaves out."""
    format: str = ""
    partitions: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    """Partition columns that are given as constants."""
    final: bool = True
    """False: a command that starts further executions, which do the writing."""
    expects: tuple[tuple[int, str], ...] = ()
    """Ids and names of the columns of what is written, where only another execution has its plan."""
    version: int | None = None
    """Of the Delta table before it was changed."""
    command: Operator | None = None
    """UPDATE, DELETE or MERGE: the operator whose text says what is set to what."""
    parts: int = 0
    """Number of parts of the table's name in the text; 0: not known."""
    alone: bool = False
    """The command starts no execution that writes."""


def query_below(operator: Operator) -> Operator | None:
    """Return the query of a command; None if it has none."""
    return operator.children[0] if operator.children else None


def listed_columns(text: str) -> tuple[tuple[str, ...] | None, int]:
    """The names of columns that a command lists, and how many more there are; None if it lists none."""
    if not text.startswith("["):
        return None, 0
    elements = lists.split(text)
    return tuple(elements.items), elements.more
