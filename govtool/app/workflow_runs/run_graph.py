"""The provenance graph of a workflow run in the store, built from its recorded plans and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from govtool.app.workflow_runs.record_checks import require_sound, require_written
from govtool.app.workflow_runs.text_relations import count_records, lines_table, reading, text_table
from govtool.errors import EngineError, IntegrityError, UsageError
from govtool.model.records import PLANS, PRIVATE_VALUES, RECORD_RUNS
from govtool.records.execute.written_types import without_zones
from govtool.redaction import clean_failure
from govtool.workflow.modules.run_graph import StateNodes, build_run_graph
from govtool.workflow.modules.run_tuples import RelationRows, RunGraph

if TYPE_CHECKING:
    import pyarrow as pa

    from govtool.model.records import RecordRun
    from govtool.model.workflow_run import BoundaryRelation, RelationFile, WorkflowRun
    from govtool.records.execute.duckdb import DuckDatabase
    from govtool.records.plan.nodes import Plan, Relation
    from govtool.records.trace.normal import Ids
    from govtool.store import Commit, Reader
    from govtool.workflow.annotate.tables import Executor


_SMALL = 256 << 20
"""Bytes of a run's relations up to which one thread is enough."""


def workflow_graph(store: Reader, commit: Commit, run: WorkflowRun, state_nodes: StateNodes = "read") -> RunGraph:
    """The graph of the whole executions of a run.

    Args:
        store: The store.
        commit: Its version.
        run: The run.
        state_nodes: As for ``build_run_graph``.

    Raises:
        UsageError: The run has no records (``usage.no-records``), or a file has changed since (``usage.changed``).
    """
    require_records(run)
    return build_run_graph(run, StoredRunFiles(store, commit, run), state_nodes)


def require_records(run: WorkflowRun) -> None:
    """Refuse a run whose rows were not captured, or whose record names what it does not have.

    Raises:
        UsageError: ``usage.no-records``.
        IntegrityError: ``store.corrupt-fragment``.
    """
    if run.mode != "records":
        raise UsageError(
            f"the run {run.id} has no records of rows",
            code="usage.no-records",
            hint="govtool workflow run WF.py --inputs DIR --records",
        )
    require_sound(run)


class StoredRunFiles:
    """Plans of a store and files where they were written; see ``RunFiles``."""

    def __init__(self, store: Reader, commit: Commit, run: WorkflowRun) -> None:
        from govtool.app.records.tables import read_tables_beside_damage

        self._store, self._commit, self._run = store, commit, run
        self._applications = frozenset(run.applications)
        self._tables, self._damaged = read_tables_beside_damage(store, commit, f"workflow:{run.workflow}")
        own = [each for each in self._tables.runs.values() if each.application in self._applications]
        self._by_output: dict[str, RecordRun] = {each.output: each for each in own if each.output}
        require_written(run, self._tables.runs.values())
        self._rows: dict[str, RelationRows] = {}
        self._bytes = sum(file.size for each in run.relations.values() for file in each.files)
        self._database: DuckDatabase | None = None

    def plan(self, path: str) -> Plan | None:
        """See ``RunFiles``.

        Raises:
            IntegrityError: It is not in the store, or may be in a damaged fragment.
        """
        from govtool.app.datasets.places import path_id
        from govtool.app.records.forgotten import naming_the_commit
        from govtool.records.split_plans import put_together

        record = self._by_output.get(path_id(path))
        if record is None:
            self._require_whole(RECORD_RUNS)
            return None
        values = self._tables.private.get(record.run)
        if values is None:
            self._require_whole(PRIVATE_VALUES, record.run)
        if not record.plan:
            return None
        if record.plan not in self._tables.plans:
            self._require_whole(PLANS, record.run)
            raise IntegrityError(f"the plan of {record.run} is not in the store", code="store.corrupt-fragment")
        body = self._tables.plans[record.plan].body
        text = values.values if values is not None else None
        with naming_the_commit(self._store, self._commit, record):
            return put_together(body, record.listings, text, dict(record.inputs))

    def _require_whole(self, table: str, run: str = "") -> None:
        for each in self._damaged:
            if each.ref.table == table:
                raise each.error([run] if run else ())

    def reason(self, path: str) -> str:
        """See ``RunFiles``."""
        return f"the plan of {path.rpartition('/')[2]} was not recorded"

    def rows(self, relation: BoundaryRelation) -> RelationRows:
        """See ``RunFiles``."""
        if relation.path not in self._rows:
            tables = [self._table(relation, file) for file in relation.files]
            self._rows[relation.path] = _rows_of(relation, tables)
        return self._rows[relation.path]

    def _table(self, relation: BoundaryRelation, file: RelationFile) -> pa.Table:
        """The rows of a file.

        Raises:
            UsageError: It has changed since the run (``usage.changed``), or cannot be read (``usage.no-rows``).
            IntegrityError: It is no file of the relation's format (``store.corrupt-fragment``).
        """
        path = Path(unquote(urlparse(file.uri).path))
        _require_same(path, file.size, file.modified)
        if relation.format == "parquet":
            return _parquet(path)
        found = reading(self._plans_reading(relation.path), relation)
        if found is None:
            return lines_table(relation, path)
        return text_table(*found, self.executors, count_records(relation.format, path))

    def _plans_reading(self, path: str) -> Iterator[Plan]:
        """The plans of what invocations made that received a relation."""
        for each in self._run.invocations:
            if path in {own for _, own, _ in each.inputs} | {own for _, _, own in each.state}:
                made = [own for _, own in each.outputs] + [own for _, _, own in each.new_state]
                yield from (plan for plan in map(self.plan, made) if plan is not None)

    def leaf(self, relation: BoundaryRelation, ids: Ids) -> Relation:
        """See ``RunFiles``."""
        from govtool.workflow.modules.circuit_leaves import file_leaf

        return file_leaf(relation, ids)

    def executors(self, plan: Plan) -> Iterator[Executor]:
        """See ``RunFiles``."""
        from govtool.app.records.engines import engines
        from govtool.records.sql.dialect import NotExact

        for engine in engines(plan.session, database=self._shared, root=plan.root):
            try:
                yield engine.start()
            except (EngineError, NotExact):
                continue

    def _shared(self) -> DuckDatabase:
        """The database of all plans of the run: there are thousands of small queries."""
        from govtool.records.execute.duckdb import DuckDatabase

        if self._database is None:
            self._database = DuckDatabase(threads=1 if self._bytes < _SMALL else None)
        return self._database


def require_unchanged(relation: BoundaryRelation) -> None:
    """Refuse a relation whose files are not those of the run, by size and time.

    Raises:
        UsageError: ``usage.changed``.
    """
    for file in relation.files:
        _require_same(Path(unquote(urlparse(file.uri).path)), file.size, file.modified)


def _require_same(path: Path, size: int, modified: int) -> None:
    try:
        facts = path.stat() if path.exists() else None
    except (OSError, ValueError):  # no name of a file
        facts = None
    if facts is None or (facts.st_size, facts.st_mtime_ns // 1_000_000) != (size, modified):
        what = "is gone" if facts is None else "was written again"
        raise UsageError(f"{path} {what} since the run: the graph cannot be built", code="usage.changed")


def _rows_of(relation: BoundaryRelation, tables: Sequence[pa.Table]) -> RelationRows:
    """The rows of a relation's files, with the tokens of records."""
    from govtool.app.datasets.places import path_id
    from govtool.model.token import PositionToken
    from govtool.records.plan.nodes import File
    from govtool.records.split_plans import listing_version

    columns: tuple[str, ...] = tuple(tables[0].column_names) if tables else ()
    values: list[tuple[Any, ...]] = []
    tokens: list[str] = []
    listed = [File(n, file.uri, file.size, file.modified) for n, file in enumerate(relation.files)]
    version, dataset = listing_version(listed), path_id(relation.path)
    for number, table in enumerate(tables):
        values += _tuples(table)
        tokens += [str(PositionToken(dataset, version, number, row)) for row in range(table.num_rows)]
    return RelationRows(columns, values, tuple(table.num_rows for table in tables), tokens)


def _tuples(table: Any) -> Sequence[tuple[Any, ...]]:
    columns = (without_zones(column).to_pylist() for column in table.columns)
    return list(zip(*columns, strict=True)) if table.num_columns else []


def _parquet(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError) as error:
        raise IntegrityError(
            f"the record of the run does not fit its file: {path} is no parquet file: {clean_failure(error)}",
            code="store.corrupt-fragment",
            hint="run the workflow again",
        ) from error
