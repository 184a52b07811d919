"""Where a write puts its rows: folders of partitions, and buckets. Spark's writer sorts the rows of a task by these.

That sort is stable while it stays in memory: rows that share a folder and a bucket keep their order. So their place in
a file is known by counting, unless the sort went to disk, or numbers and NULLs mixed, which Spark swaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from govtool.spark.live.jvm.scala import safely, sequence, strings
from govtool.spark.live.records.cached_rows import stages_and_blocks
from govtool.spark.live.records.carried import NotCarried

Settings = Sequence[tuple[str, tuple[Any, ...]]]
MAX_FOLDERS = 10_000
"""Folders and buckets, of all tasks, whose rows are counted."""
_COMPARED = frozenset(["string", "binary"])
"""Types whose values Spark compares one by one, NULL among them; other single columns are sorted by their bits."""
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
"""What Spark notes of a column of a table that was declared CHAR or VARCHAR."""


@dataclass(frozen=True, slots=True)
class WriteLayout:
    """The layout of a write.

    Attributes:
        partitions: What folders are called by.
        buckets: How many, and by which columns of the query; none: 0.
        columns: The columns of the query that give the partitions' values.
        swaps_nulls: Whether Spark swaps rows where a folder is named by NULL: it sorts by the bits of one number, and
            puts NULLs aside.
    """

    partitions: tuple[str, ...] = ()
    buckets: tuple[int, tuple[str, ...]] = (0, ())
    columns: tuple[str, ...] = ()
    swaps_nulls: bool = False

    @property
    def is_flat(self) -> bool:
        """Whether rows are written in the order in which they come."""
        return not self.partitions and not self.buckets[0]

    def expressions(self) -> list[str]:
        """The values that folders are named by, and the number of the bucket, in SQL; an empty text is NULL there."""
        found = [f"nullif(CAST({_quoted(name)} AS STRING), '')" for name in self.columns]
        count, columns = self.buckets
        return [*found, f"pmod(hash({', '.join(map(_quoted, columns))}), {count})"] if count else found


def layout_of(session: Any, plan: Any, settings: Settings, name: str, words: Sequence[Any]) -> WriteLayout:
    """The layout that a writer was given, or that its table has.

    Args:
        session: The session of pyspark.
        plan: The analyzed plan of the query.
        settings: What was set of the writer.
        name: The method that writes.
        words: Its arguments.

    Raises:
        NotCarried: Rows are sorted within it in a way that does not show their places.
    """
    given = dict(settings)
    if "clusterBy" in given:
        raise NotCarried("clusterBy sorts the rows of a task again, so that their places are not known")
    if "sortBy" in given:
        raise NotCarried("sortBy sorts the rows of a bucket again, so that their places are not known")
    mode = str(given.get("mode", ("",))[0]).lower()
    if words and (name == "insertInto" or (name == "saveAsTable" and mode == "append")):
        table = safely(partial(_table, session, str(words[0])))
        if table is not None:
            return _table_layout(table, plan, by_position=name == "insertInto")
    known = {each.lower(): (each, kind) for each, kind in _columns(plan)}
    names = strings(given["partitionBy"][0]) if "partitionBy" in given else []
    found = [known.get(each.lower(), (each, "")) for each in names]
    buckets = _buckets(*given["bucketBy"]) if "bucketBy" in given else (0, ())
    swaps = _swaps_nulls([kind for _, kind in found], buckets[0])
    columns = tuple(each for each, _ in found)
    # a folder is called as the writer was told, in a new table as the column is
    return WriteLayout(columns if name == "saveAsTable" else tuple(names), buckets, columns, swaps)


def _buckets(count: Any, first: str, others: Any) -> tuple[int, tuple[str, ...]]:
    return int(count), (first, *strings(others))


def _table_layout(table: Any, plan: Any, by_position: bool) -> WriteLayout:
    """The layout of a table that is there, whose columns are those of a query by position or by name.

    Raises:
        NotCarried: Places of rows in it are not known.
    """
    partitions, spec = tuple(strings(table.partitionColumnNames())), table.bucketSpec()
    count = 0
    names: tuple[str, ...] = ()
    if spec.isDefined():
        own = spec.get()
        if own.sortColumnNames().nonEmpty():
            raise NotCarried("the buckets of the table are sorted, so that the places of rows are not known")
        count, names = int(own.numBuckets()), tuple(strings(own.bucketColumnNames()))
    kinds = {str(each.name()): str(each.dataType().catalogString()) for each in table.schema().fields()}
    padded = {str(each.name()) for each in table.schema().fields() if each.metadata().contains(_PADDED)}
    if not padded.isdisjoint((*partitions, *names)):
        raise NotCarried(
            "the table has partitions or buckets by CHAR or VARCHAR, whose values Spark changes as it writes"
        )
    given = _columns(plan)
    by_name = {each.lower(): (each, kind) for each, kind in given}
    found: dict[str, tuple[str, str]] = (
        dict(zip(kinds, given)) if by_position else {each: by_name.get(each.lower(), ("", "")) for each in kinds}
    )
    if any(found.get(each, ("", ""))[0] == "" for each in (*partitions, *names)):
        raise NotCarried("the columns of the table are not those of the query")
    if any(found[each][1] != kinds[each] for each in names):  # other types have other hashes
        raise NotCarried("a column of the table's buckets has another type in the query")
    columns = tuple(found[each][0] for each in partitions)
    buckets = (count, tuple(found[each][0] for each in names))
    return WriteLayout(partitions, buckets, columns, _swaps_nulls([kinds[each] for each in partitions], count))


def _table(session: Any, name: str) -> Any:
    state = session._jsparkSession.sessionState()
    return state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(name))


def _columns(plan: Any) -> list[tuple[str, str]]:
    """Names and types of the columns of a query."""
    output = plan.output()
    columns = (output.apply(place) for place in range(output.size()))
    return [(str(each.name()), str(each.dataType().catalogString())) for each in columns]


def _swaps_nulls(kinds: Sequence[str], buckets: int) -> bool:
    """Whether rows are sorted by the bits of one number: by a single column of these types, and no bucket."""
    return len(kinds) == 1 and not buckets and kinds[0] not in _COMPARED


def named_places(
    session: Any, layout: WriteLayout, counted: Sequence[tuple[int, tuple[Any, ...], int]]
) -> list[tuple[int, str, int, int]]:
    """Where the rows of tasks are written: task, folder, bucket (-1: none) and how many rows, in their order.

    Args:
        session: The session of pyspark.
        layout: The layout of the write.
        counted: Task, values of `WriteLayout.expressions`, and rows.

    Raises:
        NotCarried: Their places are not known.
    """
    if len(counted) > MAX_FOLDERS and not layout.is_flat:
        raise NotCarried(f"its tasks write to more than {MAX_FOLDERS:,} partitions or buckets")
    if layout.swaps_nulls and any(values[0] is None for _, values, rows in counted if rows):
        raise NotCarried("Spark swaps rows where a partition is NULL, so that their places are not known")
    catalog = session._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
    known: dict[tuple[Any, ...], str] = {}
    found = []
    for task, values, rows in counted:
        if not rows and not layout.is_flat:
            continue
        own = values[: len(layout.partitions)]
        if own not in known:
            parts = zip(layout.partitions, own)
            known[own] = "/".join(catalog.getPartitionPathString(name, value) for name, value in parts)
        found.append((task, known[own], values[-1] if layout.buckets[0] else -1, rows))
    return found


class SortsInMemory:
    """Whether the jobs that ran since this was made sorted their rows without the disk.

    Args:
        session: The session of pyspark.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._first = self._jobs()

    def held(self) -> bool:
        """Return whether they did.

        Raises:
            Py4JError: Spark does not show it.
        """
        store = stages_and_blocks(self._session)
        jobs = [store.job(number) for number in range(self._first, self._jobs())]
        stages = [store.lastStageAttempt(number) for job in jobs for number in sequence(job.stageIds())]
        return bool(stages) and not any(int(s.memoryBytesSpilled()) or int(s.diskBytesSpilled()) for s in stages)

    def _jobs(self) -> int:
        return int(self._session.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
