"""Rows of a relation after a deletion, written from what propagation knows of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from govtool.app.workflow_runs.inputs import listing
from govtool.model.workflow_run import BoundaryRelation

if TYPE_CHECKING:
    from govtool.workflow.queries.statuses import RowDeletion


def written_rows(relation: BoundaryRelation, deletion: RowDeletion, place: Path) -> BoundaryRelation | None:
    """Write the rows that a deletion leaves; None where their types are not written here as Spark writes them.

    Args:
        relation: The relation as it was recorded.
        deletion: A deletion that is certain.
        place: The folder of the new relation, which is not there yet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if relation.format != "parquet" or not relation.files:
        return None
    schema = pq.read_schema(unquote(urlparse(relation.files[0].uri).path)).remove_metadata()
    if any(pa.types.is_timestamp(each.type) or pa.types.is_nested(each.type) for each in schema):
        return None
    rows = [row.after for row in deletion.rows if row.after is not None] + list(deletion.gains)
    try:
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    except (pa.ArrowException, ValueError, TypeError):
        return None
    place.mkdir(parents=True)
    pq.write_table(table, place / "part-00000.parquet")
    return BoundaryRelation(str(place), "parquet", relation.schema, listing(place))
