"""Writes: what a statement does to a dataset."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.walk.queries.counts import Bound
from govtool.capture.sql.walk.relation import QueryOutput

NOT_NAMED: Final = 0
"""A definition, or ``UPDATE SET *``: the statement goes by the columns that there are."""

BY_NAME: Final = 1
"""Names them: an INSERT with a list, an UPDATE."""

BY_POSITION: Final = 2
"""An INSERT without a list: it takes as many columns as it puts in."""


class Write:
    """The effect of one statement on one dataset.

    Attributes:
        target: The dataset; empty for a bare SELECT.
        kind: The statement's kind: ``create_view``, ``insert`` …
        mode: See ``Derivation.mode``.
        target_kind: See ``Derivation.target_kind``.
        output: What is written.
        rows: What decides which rows there are: dependencies of the row-set kinds, with the nodes that name them.
        steering: The same of the WHERE and ON of an UPDATE, which steer its values instead.
        tree: The part of the statement's tree that writes, until its places are known; None for all of it.
        places: See ``govtool.model.places``.
        reads: Datasets whose rows flow, and the arms in which they do.
        dataset_reads: Files and stages that are read whole.
        mentioned: Tables that a part of the statement which is not understood names.
        defines: Whether ``output`` says what columns the target has (a definition), and not just which were written.
        named: Refs of the columns that the statement names, used or not.
        listed: Refs of the columns that it reaches by their position, behind a list of names.
        fills: How the statement says which columns of its target it fills: ``NOT_NAMED``, ``BY_NAME``, ``BY_POSITION``.
        bounds: How many of what there are in each group, by ``HAVING COUNT(…) >= k``.
        renamed_to: Of a rename.
        reason: Why what may decide about its rows only may; empty where that is for want of names.
    """

    __slots__ = (
        "bounds",
        "dataset_reads",
        "defines",
        "fills",
        "kind",
        "listed",
        "mentioned",
        "mode",
        "named",
        "output",
        "places",
        "reads",
        "reason",
        "renamed_to",
        "rows",
        "steering",
        "target",
        "target_kind",
        "tree",
    )

    def __init__(
        self,
        target: str,
        kind: str,
        mode: str,
        target_kind: str = "table",
        output: QueryOutput | None = None,
        *,
        defines: bool = True,
        bounds: list[Bound] | None = None,
        renamed_to: str | None = None,
    ) -> None:
        self.target = target
        self.kind = kind
        self.mode = mode
        self.target_kind = target_kind
        self.output = output if output is not None else QueryOutput()
        self.rows: dict[int, exp.Expr | None] = {}
        self.steering: dict[int, exp.Expr | None] = {}
        self.tree: exp.Expr | None = None
        self.places: str | None = None
        self.reads: dict[str, tuple[int, ...]] = {}
        self.dataset_reads: tuple[str, ...] = ()
        self.mentioned: tuple[str, ...] = ()
        self.named: frozenset[int] = frozenset()
        self.listed: frozenset[int] = frozenset()
        self.fills = NOT_NAMED
        self.defines = defines
        self.bounds = bounds or []
        self.renamed_to = renamed_to
        self.reason = ""

    def of(self, target: str) -> Write:
        """Return the same write of another dataset."""
        write = Write(target, self.kind, self.mode, self.target_kind, self.output, defines=self.defines)
        write.bounds = self.bounds
        write.rows, write.reads, write.named, write.listed = self.rows, self.reads, self.named, self.listed
        write.fills = self.fills
        write.dataset_reads = self.dataset_reads
        write.mentioned = self.mentioned
        write.places = self.places
        write.reason = self.reason
        return write
