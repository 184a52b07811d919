"""Inputs of a workflow in files of text: their records as lines, and the rows that Spark reads from them.

Spark takes each line that is not blank for a record, also where a quote stays open, and has rules of its own for
quotes, short and long lines and cells of other types. So the rows are those of a plan of the run that read the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.errors import UsageError
from govtool.records.execute.csv_files import BLANKS
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import Plan, Relation
from govtool.records.plan.tree import walk_nodes
from govtool.records.plan.types import LONG
from govtool.records.trace.carrier import RECORD
from govtool.redaction import clean_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from govtool.model.workflow_run import BoundaryRelation
    from govtool.workflow.annotate.tables import Executor


def text_records(file: Path) -> Iterator[str]:
    """The records of a file as text, each with its end of line, the header of CSV first."""
    with file.open(encoding="utf-8", errors="surrogateescape", newline="") as lines:
        for line in lines:
            if line.strip(BLANKS):
                yield line if line.endswith(("\n", "\r")) else line + "\n"


def count_records(format: str, file: Path) -> int:
    """The number of records, without the header of CSV."""
    return max(0, sum(1 for _ in text_records(file)) - (format == "csv"))


def reading(plans: Iterable[Plan], relation: BoundaryRelation) -> tuple[Plan, Relation] | None:
    """The first plan that reads the files of a relation, with its leaf; None if none does."""
    wanted = {file.uri for file in relation.files}
    for plan in plans:
        for node in walk_nodes(plan.root):
            if isinstance(node, Relation) and node.format == relation.format and _uris(node) == wanted:
                return plan, node
    return None


def _uris(leaf: Relation) -> set[str]:
    return {file.uri for file in leaf.files}


def text_table(plan: Plan, leaf: Relation, executors: Callable[[Plan], Iterator[Executor]], records: int) -> pa.Table:
    """All columns of a leaf over files of text, in the order of their records.

    Args:
        plan: The plan that it is of.
        leaf: The leaf.
        executors: See ``RunFiles``.
        records: How many records the files have.

    Raises:
        UsageError: No engine reads them, or reads as many rows (``usage.no-rows``).
    """
    from govtool.workflow.modules.run_graph import is_refusal

    own = tuple(Attribute(number, each.name, each.type) for number, each in enumerate(leaf.schema.fields))
    record = Attribute(len(own), "record", LONG)
    whole = replace(leaf, columns=(*own, record), metadata=((record.id, RECORD),))
    reason = "no engine evaluates it"
    for executor in executors(replace(plan, root=whole)):
        try:
            table = executor.arrow(whole)
        except Exception as error:
            if not is_refusal(error):
                raise
            reason = clean_failure(error)
            continue
        if table.num_rows == records:
            return _in_order(table, [each.name for each in own])
        reason = f"{table.num_rows:,} rows are read from {records:,} lines"
    raise UsageError(f"{leaf.dataset} cannot be read record by record: {reason}", code="usage.no-rows")


def _in_order(table: Any, names: list[str]) -> Any:
    numbered = table.rename_columns([f"c{n}" for n in range(table.num_columns)])
    ordered = numbered.sort_by(f"c{len(names)}")
    return ordered.select(list(range(len(names)))).rename_columns(names)


def lines_table(relation: BoundaryRelation, file: Path) -> pa.Table:
    """The records of a file that no plan reads, as they are written."""
    import pyarrow as pa

    texts = [line.rstrip("\r\n").encode("utf-8", "replace").decode() for line in text_records(file)]
    return pa.table({"value": pa.array(texts[relation.format == "csv" :], pa.string())})
