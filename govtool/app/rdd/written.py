"""Rows of an RDD program's result at their places in the files that it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from govtool.app.rdd.lines import DUPLICATES
from govtool.errors import EvidenceError
from govtool.model.token import PositionToken
from govtool.records.execute.inputs import local_path
from govtool.records.trace.answer import InputAnswer, text_table
from govtool.spark.rdd import sources, worker

if TYPE_CHECKING:
    from govtool.app.rdd.open import OpenedProgram
    from govtool.records.plan.nodes import Relation
    from govtool.records.trace.segment import Exactness
    from govtool.spark.rdd.position import RddPlace

VALUE = "value"
"""The column of a record."""
ALL_LINES = (1 << 31) - 1
"""A limit that no page reaches."""


def rows_in_files(
    opened: OpenedProgram, output: Relation, written: str, place: RddPlace, grade: tuple[Exactness, str], limit: int
) -> InputAnswer:
    """Rows of a result at their places in the written files."""
    from govtool.spark.rdd.conditions import KeyIn, keys_of
    from govtool.spark.rdd.operators import itself
    from govtool.spark.rdd.rows import once, ordered_rows

    context = opened.context
    lines = context.node_of(context.textFile(written))
    keys = KeyIn(keys_of(place.rows.map(worker.value_of)), itself)
    rows = once(keys.matching(ordered_rows(lines), worker.on_value(worker.single))).persist()
    count, wanted = rows.count(), place.rows.count()
    if count > wanted and grade[0] == "exact":
        grade = ("superset", DUPLICATES)
    page = rows.takeOrdered(limit, by_id)
    ordinals = file_ordinals(output)
    files = {file.ordinal: file.uri for file in output.files}
    named = zip(sources.places_of(lines, [row[0] for row in page]), page, strict=True)
    found = sorted(((ordinal_of(ordinals, file), number, row[1]) for (file, number), row in named), key=by_place)
    shown = tuple(
        {
            "_id": str(PositionToken(opened.name, output.version, file, number)),
            "_file": files[file],
            "_row": number,
            VALUE: value,
        }
        for file, number, value in found
    )
    rows.unpersist()

    def table() -> Any:
        return text_table(rows_in_files(opened, output, written, place, grade, ALL_LINES).rows)

    return InputAnswer(opened.name, output.version, *grade, count, count > len(shown), shown, table=table)


def file_ordinals(leaf: Relation | None) -> dict[str, int]:
    """The ordinals of files, by the names that ``govtool.spark.rdd.sources`` has for them."""
    if leaf is None:
        return {}
    return {str(local_path(file.uri) or file.uri): file.ordinal for file in leaf.files}


def ordinal_of(ordinals: Mapping[str, int], file: str) -> int:
    """The ordinal of a file; 0 where records are in none.

    Raises:
        EvidenceError: The run listed other files, or not all (``evidence.unlisted``).
    """
    if file and file not in ordinals:
        raise EvidenceError(f"{file} is not among the files that the run listed", code="evidence.unlisted")
    return ordinals.get(file, 0)


def by_id(row: worker.Row) -> Any:
    """The order of a row."""
    return worker.order_of(row[0])


def by_place(record: tuple[int, int, Any]) -> tuple[int, int]:
    """File ordinal and row of a record."""
    return record[:2]
