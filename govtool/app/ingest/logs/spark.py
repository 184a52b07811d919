"""The Spark engine: the steps of the local engine on the executors of a cluster, for logs larger than a machine.

The driver plans, counts and commits. Executors read the logs, which lie where all of them see them, exchange rows of
bytes (``exchange``) by Arrow, and write the fragments into the store themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.ingest.logs import parts, steps, tasks
from govtool.app.ingest.logs.exchange import SCHEMA, ExchangeRow, arrow_step
from govtool.app.ingest.logs.local import LogFindings, check_rejects
from govtool.app.ingest.logs.meter import Meter
from govtool.app.ingest.logs.step_files import spool_key, spooled
from govtool.app.ingest.payload import DERIVATIONS_PER_FRAGMENT
from govtool.app.project.spark_session import PARTITIONS
from govtool.model.spread import buckets_for

if TYPE_CHECKING:
    from govtool.capture.logs.pieces import ByteSpan, Piece, SpanSurvey
    from govtool.capture.logs.read import LogOptions
    from govtool.capture.sql.extract import Options
    from govtool.store import Store

BYTES_PER_PARTITION = 64 << 20
"""Bytes of logs whose sessions are folded together, about."""

SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "500"}
"""Rows of an exchange may have a megabyte each."""


class Engine:
    """One ingest on a Spark session.

    Args:
        stack: Closed after the commit; the folder of kept steps is removed then.
        spark: The session.
        how: How logs are read.
        settings: How statements are understood.
        store: Where fragments are written.
        source: The ingest source that the fragments belong to.
    """

    def __init__(
        self, stack: ExitStack, spark: Any, how: LogOptions, settings: Options, store: Store, source: str
    ) -> None:
        self._stack = stack
        self._folder: Path | None = None
        self._spark = spark
        self._how = how
        self._settings = settings
        self._store = store
        self._source = source
        self._kept: list[Any] = []
        self._parallel = max(2, spark.sparkContext.defaultParallelism)

    def surveys(self, spans: Sequence[ByteSpan]) -> list[SpanSurvey | str]:
        """Return the contents of spans, in their order; for one that cannot be read, the reason."""
        from govtool.capture.logs.pieces import SpanSurvey

        rows = self._distributed([_json_row(number, span) for number, span in enumerate(spans)])
        found = sorted(self._step(rows, tasks.survey_step).collect(), key=lambda row: row["number"])
        return [
            row["name"] if row["kind"] == "problem" else SpanSurvey(row["name"], int(bytes(row["data"])))
            for row in found
        ]

    def gather(
        self, pieces: Sequence[Piece], logs: int, max_errors: int | None, meter: Meter, batch: str
    ) -> LogFindings:
        """Read logs and understand what is in them; see ``govtool.app.ingest.logs.local.gather``."""
        if self._spark.sparkContext.master.startswith("local"):  # only then do executors surely see the cache
            self._folder = self._stack.enter_context(spooled(spool_key(batch))).folder
        try:
            return self._gather(pieces, logs, max_errors, meter)
        finally:
            for frame in self._kept:
                frame.unpersist()

    def _gather(self, pieces: Sequence[Piece], logs: int, max_errors: int | None, meter: Meter) -> LogFindings:
        from govtool.capture.logs.collected_bytes import load

        size = sum(piece.span.end - piece.span.start for piece in pieces)
        sessions = max(self._parallel, size // BYTES_PER_PARTITION)
        self._spark.conf.set(PARTITIONS, str(sessions))
        given = self._distributed([_json_row(number, piece) for number, piece in enumerate(pieces)])
        read = self._keep(
            "read", self._step(given, partial(tasks.read_step, how=self._how, only=logs == 1, sessions=sessions))
        )
        about = {row["kind"]: bytes(row["data"]) for row in self._together(read, "about", tasks.about_step).collect()}
        whole = load(about["about"])
        check_rejects(whole, max_errors)
        meter.read(size, whole)
        texts = self._keep("texts", _first(read.where("kind = 'text'")))
        folded = self._folded(read, texts, sessions)
        (row,) = self._together(folded, "folded", tasks.folded_step).collect()
        counted = json.loads(row["data"])
        scripts = self._keep("scripts", self._scripts(folded, texts))
        gathered = LogFindings(
            parts.findings_in(about["findings"])[0],
            steps.notes_of(whole, self._how.dialect),
            {
                "records": whole.log.counts.records,
                "failed": whole.log.counts.failed,
                "unfinished": whole.log.counts.unfinished,
                "rolled_back": counted["rolled_back"],
                "scripts": counted["scripts"],
                "rejected": whole.rejected,
                "sessions": counted["sessions"],
                "distinct": texts.count(),
                "users": counted["users"],
            },
            self._dialects(texts),
        )
        settings = steps.in_database(self._settings, set(counted["catalogs"]))
        tables, sizes = self._resolve(gathered, scripts, settings, meter)
        self._write(gathered, tables, sizes)
        return gathered

    def _folded(self, read: Any, texts: Any, sessions: int) -> Any:
        logs = read.where("kind = 'log'").repartition(sessions, "part")
        needs = self._step(logs, tasks.needed_step).selectExpr("part as wanted", "name")
        supplied = needs.join(texts.drop("part"), "name").selectExpr(
            "wanted as part", "'text' as kind", "name", "number", "data"
        )
        rows = logs.unionByName(supplied).repartition(sessions, "part")
        return self._keep("folded", self._step(rows, tasks.fold_step))

    def _scripts(self, folded: Any, texts: Any) -> Any:
        alone = folded.where("kind = 'alone'").unionByName(texts).repartition("part")
        episodes = folded.where("kind = 'episode'").repartition("part")
        return self._step(alone, tasks.scripts_step).unionByName(self._step(episodes, tasks.episodes_step))

    def _dialects(self, texts: Any) -> list[str]:
        from pyspark.sql import functions as f

        found = texts.select(f.substring_index("name", " ", -1).alias("dialect")).distinct().collect()
        return sorted(row["dialect"] for row in found)

    # -- resolving -----------------------------------------------------------------------------------------------------

    def _resolve(
        self, gathered: LogFindings, scripts: Any, settings: Options, meter: Meter
    ) -> tuple[Any, dict[str, int]]:
        """Resolve scripts and add what is found; return the rows of the derivations, and the sizes of their tables."""
        queries = scripts.where("kind = 'query'")
        counts = {row["kind"]: row["count"] for row in scripts.groupBy("kind").count().collect()}
        meter.resolving(counts.get("definition", 0), counts.get("query", 0))
        step = partial(tasks.definitions_step, settings=settings)
        definitions = self._keep("definitions", self._together(scripts, "definition", step))
        found = [definitions]
        knowledge = definitions.where("kind = 'knowledge'")
        several = steps.groups_for(counts.get("query", 0)) > 1
        first = self._keep(
            "queries", self._queries(queries, counts.get("query", 0), knowledge, settings, final=not several)
        )
        found.append(first)
        again = first.where("kind = 'again'")
        left = again.count()
        if left:
            usage = self._together(first.where("kind = 'usage'"), "usage", tasks.usage_step)
            context = self._keep("context", knowledge.unionByName(usage))
            found.append(self._keep("again", self._queries(again, left, context, settings, final=True)))
        rows = found[0]
        for more in found[1:]:
            rows = rows.unionByName(more)
        (row,) = self._together(rows, "findings", tasks.findings_step).collect()
        findings, sizes = parts.findings_in(bytes(row["data"]))
        gathered.findings.add(findings)
        meter.resolved(sum(counts.values()), gathered.findings)
        return rows.where("kind = 'table'"), sizes

    def _queries(self, queries: Any, count: int, context: Any, settings: Options, *, final: bool) -> Any:
        """Queries by group, and with each partition of them all that is known."""
        from pyspark.sql import functions as f

        groups = steps.groups_for(count)
        partitions = min(groups, 4 * self._parallel)
        number = f.expr(f"shiftright(part * {groups}L, 32)")
        spread = queries.withColumn("part", number).withColumn("place", f.expr(f"part % {partitions}"))
        everywhere = context.withColumn("place", f.expr(f"explode(sequence(0L, {partitions - 1}L))"))
        rows = spread.unionByName(everywhere).repartition(partitions, "place").drop("place")
        return self._step(rows, partial(tasks.queries_step, settings=settings, final=final))

    # -- writing -------------------------------------------------------------------------------------------------------

    def _write(self, gathered: LogFindings, tables: Any, sizes: dict[str, int]) -> None:
        from govtool.model.columnar import DERIVATIONS
        from govtool.store import FragmentRef

        buckets = buckets_for(gathered.findings.derivations, DERIVATIONS_PER_FRAGMENT)
        ranges = 1
        while ranges < min(buckets, 4 * self._parallel):
            ranges *= 2
        placed = self._step(tables, partial(tasks.place_step, ranges=ranges))
        uri, known = self._store.uri, self._store.store_id
        step = partial(tasks.write_step, uri=uri, store_id=known, source=self._source, buckets=buckets, ranges=ranges)
        written = self._step(placed.repartition(ranges, "part"), step).collect()
        columns = sizes["columns"]
        for row in sorted(written, key=lambda row: row["name"]):
            size, rows = json.loads(bytes(row["data"]))
            columns += row["number"]
            gathered.uploaded.append(FragmentRef(self._source, DERIVATIONS, row["name"], size, rows))
        gathered.counts |= {
            "datasets": sizes["datasets"],
            "columns": columns,
            "edges": gathered.findings.edges,
        }

    # -- frames --------------------------------------------------------------------------------------------------------

    def _distributed(self, rows: list[ExchangeRow]) -> Any:
        """Rows of the driver, a task each."""
        slices = max(1, len(rows))
        return self._spark.createDataFrame([tuple(row) for row in rows], SCHEMA).repartition(slices, "number")

    def _step(self, frame: Any, step: Callable[[Iterator[ExchangeRow]], Iterable[ExchangeRow]]) -> Any:
        return frame.mapInArrow(arrow_step(step), SCHEMA)

    def _together(self, frame: Any, kind: str, step: Callable[[Iterator[ExchangeRow]], Iterable[ExchangeRow]]) -> Any:
        """A step on all rows of a kind, in one task."""
        return self._step(frame.where(f"kind = '{kind}'").repartition(1), step)

    def _keep(self, name: str, frame: Any) -> Any:
        """Keep the input of several later steps where a killed ingest finds it again, or else until the end."""
        from pyspark import StorageLevel

        if self._folder is None:
            self._kept.append(frame.persist(StorageLevel.DISK_ONLY))
            return self._kept[-1]
        folder = self._folder / name
        if not (folder / "_SUCCESS").exists():
            frame.write.mode("overwrite").option("compression", "zstd").parquet(folder.as_uri())
        return self._spark.read.schema(SCHEMA).parquet(folder.as_uri())


def _first(texts: Any) -> Any:
    """Of each statement the text that comes first in the log."""
    from pyspark.sql import functions as f

    return (
        texts.groupBy("part", "name")
        .agg(f.min("number").alias("number"), f.min_by("data", "number").alias("data"))
        .selectExpr("part", "'text' as kind", "name", "number", "data")
    )


def _json_row(number: int, value: Any) -> ExchangeRow:
    return ExchangeRow(number, "", "", number, json.dumps(value).encode())
