"""Writes: what a statement does to a dataset, and what all writing statements share."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.counts import Bound
from govtool.capture.sql.walk.dependencies import Deps, Interner, bounded
from govtool.capture.sql.walk.functions import type_text
from govtool.capture.sql.walk.query import QueryWalk
from govtool.capture.sql.walk.relation import QueryOutput, Source, file_name
from govtool.capture.sql.walk.state import Lookup

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
        places: See ``govtool.model.places``.
        reads: Datasets whose rows flow, and the arms in which they do.
        dataset_reads: Files and stages that are read whole.
        defines: Whether ``output`` says what columns the target has (a definition), and not just which were written.
        named: Refs of the columns that the statement names, used or not.
        fills: How the statement says which columns of its target it fills: ``NOT_NAMED``, ``BY_NAME``, ``BY_POSITION``.
        bounds: How many of what there are in each group, by ``HAVING COUNT(…) >= k``.
        renamed_to: Of a rename.
    """

    __slots__ = (
        "bounds",
        "dataset_reads",
        "defines",
        "fills",
        "kind",
        "mode",
        "named",
        "output",
        "places",
        "reads",
        "renamed_to",
        "rows",
        "steering",
        "target",
        "target_kind",
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
        self.places: str | None = None
        self.reads: dict[str, tuple[int, ...]] = {}
        self.dataset_reads: tuple[str, ...] = ()
        self.named: frozenset[int] = frozenset()
        self.fills = NOT_NAMED
        self.defines = defines
        self.bounds = bounds or []
        self.renamed_to = renamed_to

    def of(self, target: str) -> Write:
        """Return the same write of another dataset."""
        write = Write(target, self.kind, self.mode, self.target_kind, self.output, defines=self.defines)
        write.bounds = self.bounds
        write.rows, write.reads, write.named = self.rows, self.reads, self.named
        write.fills = self.fills
        write.dataset_reads = self.dataset_reads
        write.places = self.places
        return write


class WriteWalk(QueryWalk):
    """Records writes."""

    def __init__(self, dialect: str, interner: Interner, lookup: Lookup) -> None:
        super().__init__(dialect, interner, lookup)
        self.writes: list[Write] = []

    def _taken(self, write: Write) -> Write:
        """Move what the walk has recorded so far into ``write``."""
        write.rows, self.rows = self.rows, {}
        write.reads, self.reads = self.reads, {}
        return write

    def _write(
        self,
        table: exp.Expr,
        output: QueryOutput,
        kind: str,
        mode: str,
        target_kind: str,
        query: exp.Expr | None,
        *,
        defines: bool = True,
    ) -> Write:
        name = self._target(table)
        write = self._taken(Write(name, kind, mode, target_kind, output, defines=defines))
        write.bounds = bounds_of(query, self) if query is not None else []
        self.writes.append(write)
        return write

    def _target(self, node: exp.Expr) -> str:
        if isinstance(node, nodes.Schema):
            node = node.this
        if isinstance(node, nodes.Table):
            name = self.lookup.table_name(node)
            if name:
                return name
        if isinstance(node, nodes.Directory):
            return file_name(node.this.name)
        self.diagnose("opaque", "the target is named by an expression or parameter", node)
        return ""

    def _column_list(self, node: exp.Expr) -> tuple[list[str], list[str | None]]:
        names: list[str] = []
        types: list[str | None] = []
        for item in node.expressions if isinstance(node, nodes.Schema) else ():
            if type(item) is nodes.ColumnDef:
                args = item.args
                names.append(self.name(args.get("this")))
                types.append(type_text(args.get("kind"), self.dialect))
            elif isinstance(item, (nodes.Identifier, nodes.Column)):
                names.append(self.name(item.this if isinstance(item, nodes.Column) else item))
                types.append(None)
        return names, types

    def _kind_of(self, table: exp.Expr) -> str:
        name = self.lookup.table_name(table) if isinstance(table, nodes.Table) else ""
        return "temporary" if name.startswith("temp.") else "table"

    def _target_source(self, table: exp.Expr) -> Source:
        node = table.this if isinstance(table, nodes.Schema) else table
        alias, _ = self._alias(node)
        name = self.lookup.table_name(node) if isinstance(node, nodes.Table) else ""
        if not name or not isinstance(node, nodes.Table):
            return Source(alias, output=QueryOutput())
        info = self.lookup.table(name)
        return Source(alias or self.name(node.parts[-1]), table=info, full_name=".".join(self.qualifier(node.parts)))

    def _add_to(self, output: QueryOutput, name: str, deps: Deps) -> None:
        position = output.index().get(name)
        if position is None:
            output.add(name, deps)
        else:
            output.deps[position] = bounded((*output.deps[position], *deps))


def bounds_of(query: exp.Expr, walk: QueryWalk) -> list[Bound]:
    """Return the bounds on the size of groups in the HAVING of the outermost SELECT."""
    body = query.unnest() if isinstance(query, nodes.Subquery) else query
    return walk.bounds.get(id(body), []) if body.args.get("having") is not None else []
