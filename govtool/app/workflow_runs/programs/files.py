"""Plans and rows of a recorded program, put in order so that the graph of a run can be built of them.

Files of programs are not kept: the next run writes them again, and this one may have, too. So what is gone is evaluated
again from its plan, if that determines it, into a temporary file that takes its place. What can be neither read nor
evaluated again is *lost*: it stands as one tuple, and whatever read it depends on it as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from govtool.app.workflow_runs.programs.layout import ProgramLayout, has_files, written_files
from govtool.app.workflow_runs.programs.rows import ReadableFile, output_rows, source_rows
from govtool.errors import EngineError, UsageError
from govtool.model.token import ROW_BITS, PositionToken
from govtool.model.workflow_run import BoundaryRelation, RelationFile, WorkflowRun
from govtool.records.execute.inputs import changed, local_path
from govtool.records.execute.places import place_of
from govtool.records.leaves import with_relations
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import Break, File, LocalRows, Plan, Project, Relation, Union, Write, outputs
from govtool.records.plan.tree import Node, walk_nodes
from govtool.records.plan.types import LONG, Field, Struct, Type
from govtool.records.sql.dialect import NotExact
from govtool.records.trace.carrier import RECORD
from govtool.records.trace.normal import Ids, normalized, spare_ids
from govtool.redaction import clean_failure
from govtool.workflow.modules.run_tuples import RelationRows

if TYPE_CHECKING:
    from govtool.workflow.annotate.tables import Executor

_LOST = RelationRows(("lost",), [(None,)], (1,), [])


@dataclass(slots=True)
class ProgramFiles:
    """See ``RunFiles``; made by ``opened_program``."""

    layout: ProgramLayout
    scratch: Path
    readable: dict[str, ReadableFile] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    """Relations that are lost, with the reason."""
    _plans: dict[str, Plan] = field(default_factory=dict)
    _reasons: dict[str, str] = field(default_factory=dict)
    _rows: dict[str, RelationRows] = field(default_factory=dict)

    def plan(self, path: str) -> Plan | None:
        """See ``RunFiles``."""
        return self._plans.get(path)

    def reason(self, path: str) -> str:
        """See ``RunFiles``."""
        return self._reasons.get(path, "its plan was not recorded")

    def executors(self, plan: Plan) -> Iterator[Executor]:
        """See ``RunFiles``."""
        from govtool.app.records.engines import engines

        for engine in engines(plan.session, root=plan.root):
            try:
                yield engine.start()
            except (EngineError, NotExact):
                continue

    def rows(self, relation: BoundaryRelation) -> RelationRows:
        """See ``RunFiles``."""
        path = relation.path
        if path not in self._rows:
            self._rows[path] = self._read(path)
        return self._rows[path]

    def leaf(self, relation: BoundaryRelation, ids: Ids) -> Relation:
        """See ``RunFiles``."""
        path = relation.path
        if path in self.lost:
            hint = "govtool trace back reads files of other formats" if path in self.layout.outputs.values() else None
            raise UsageError(f"{path} cannot be read: {self.lost[path]}", code="usage.no-rows", hint=hint)
        found, kinds = self.readable[path], self._kinds(path)
        if not found.columns or not set(found.columns) <= kinds.keys():
            raise UsageError(f"the columns of {path} are not known", code="usage.no-columns")
        columns = tuple(ids.attribute(name, kinds[name]) for name in found.columns)
        schema = Struct(tuple(Field(each.name, each.type) for each in columns if each.name not in found.partitioned))
        return Relation(0, path, "parquet", found.files, columns, schema, found.partitioned)

    def _kinds(self, path: str) -> dict[str, Type]:
        """The types of a relation's columns, by name."""
        from govtool.records.split_plans import relation_of

        source = self.layout.sources.get(path)
        if source is not None:
            kinds = {each.name: each.type for each in source.leaf.schema.fields}
            return kinds | {each.name: each.type for each in source.leaf.columns}
        at = next(at for at, made in self.layout.outputs.items() if made == path)
        action, plan = self.layout.program.actions[at], self.layout.plans[at]
        known = relation_of(action.record.written, action.output) if action.record and action.record.written else None
        if known is not None:
            return {each.name: each.type for each in known.columns}
        if plan is None:
            return {}
        root = _as_write(plan.root, path)
        return {name: each.type for name, each in zip(root.columns, outputs(root.child), strict=True)}

    # ---- preparation ------------------------------------------------------------------------------------------------

    def prepare(self) -> WorkflowRun:
        """Find or evaluate what each relation holds, in the order of the actions; return the run over these files."""
        for path, source in self.layout.sources.items():
            if source.otherwise:
                self.lost[path] = source.otherwise
            else:
                self._prepare_source(path, source.leaf, source.columns, source.version)
        for at, plan in enumerate(self.layout.plans):
            path = self.layout.outputs[at]
            self._prepare_output(at, path, self._over_readable(at, path, plan))
        return self._run()

    def _over_readable(self, at: int, path: str, plan: Plan | None) -> Plan | None:
        """The plan of an action over files that can be read; None, and a reason, where there are none."""
        if plan is None:
            self._reasons[path] = self.layout.reasons.get(at, "its plan was not recorded")
            return None
        broken = next((node.reason for node in walk_nodes(plan.root) if isinstance(node, Break)), None)
        if broken is not None:
            self._reasons[path] = broken
            return None
        ids = spare_ids(plan.root)
        try:
            root = with_relations(plan.root, lambda leaf: self._leaf(at, leaf, ids))
        except NotExact as error:
            self._reasons[path] = str(error)
            return None
        return replace(plan, root=_as_write(root, path))

    def _prepare_source(self, path: str, leaf: Relation, columns: tuple[str, ...], version: str) -> None:
        gone = changed([leaf])
        if gone:
            self.lost[path] = f"{leaf.dataset} {gone[0].reason} since"
        elif leaf.format == "parquet" and all(local_path(file.uri) is not None for file in leaf.files):
            self.readable[path] = ReadableFile(leaf.files, columns, leaf.partitioned)
        else:
            self._evaluate_source(path, leaf, columns, version)

    def _evaluate_source(self, path: str, leaf: Relation, columns: tuple[str, ...], version: str) -> None:
        """Read files of another format once, in the order of their records."""
        kinds = {each.name: each.type for each in leaf.schema.fields} | {each.name: each.type for each in leaf.columns}
        own = tuple(Attribute(number, name, kinds[name]) for number, name in enumerate(columns))
        record = Attribute(len(own), "record", LONG)
        whole = replace(leaf, columns=(*own, record), metadata=((record.id, RECORD),))
        session = next((plan.session for plan in self.layout.plans if plan is not None), None)
        table, reason = None, "no plan of the run can be read"
        if session is not None:
            table, reason = self.evaluated(Plan(whole, session), determined=False)
        if table is None:
            self.lost[path] = f"{leaf.dataset} cannot be read: {reason}"
            return
        names = [*columns, "record"]
        table = table.rename_columns([f"c{n}" for n in range(len(names))]).sort_by(f"c{len(own)}")
        packed = table.column(len(own)).to_pylist()
        dataset = leaf.dataset
        tokens = tuple(
            str(PositionToken(dataset, version, one >> ROW_BITS, one & ((1 << ROW_BITS) - 1))) for one in packed
        )
        self._keep(path, table.select(list(range(len(own)))), columns, tokens)

    def _prepare_output(self, at: int, path: str, plan: Plan | None) -> None:
        """Take the files that an action wrote, or evaluate its plan where they are gone."""
        action = self.layout.program.actions[at]
        files = self._written(at)
        if plan is not None:
            self._plans[path] = plan
        if files is not None and not changed([_leaf_of(files, action.output)]) and _has_columns(files):
            self.readable[path] = files
            return
        table, reason = (None, self.reason(path)) if plan is None else self.evaluated(plan)
        if table is None:
            reason = reason if plan is None else f"it is no Parquet file as it was written, and {reason}"
            self.lost[path] = reason
            self._plans.pop(path, None)
            self._reasons[path] = reason
            return
        self._keep(path, table, plan.root.columns if plan is not None and isinstance(plan.root, Write) else (), ())

    def _written(self, at: int) -> ReadableFile | None:
        """The files of a write, if they are Parquet on this machine; files that are gone are found out later."""
        from govtool.records.split_plans import relation_of

        action = self.layout.program.actions[at]
        files = written_files(action)
        if not files or not all(file.uri.endswith(".parquet") and local_path(file.uri) for file in files):
            return None
        known = relation_of(action.record.written, action.output) if action.record and action.record.written else None
        if known is None:
            plan = self.layout.plans[at]
            has_partitions = plan is None or not isinstance(plan.root, Write) or bool(plan.root.partitioned)
            return None if has_partitions else ReadableFile(files, ())
        if any(len(file.partition) != len(known.partitioned) for file in files):
            return None
        types = {each.name: each.type for each in known.columns}
        kinds = tuple(types[name] for name in known.partitioned)
        return ReadableFile(files, tuple(types), known.partitioned, kinds=kinds)

    def evaluated(self, plan: Plan, *, determined: bool = True) -> tuple[Any, str]:
        """The rows of a plan as a table; or None, and the reason.

        Args:
            plan: The plan.
            determined: Refuse a plan that may give other rows another time.
        """
        from govtool.workflow.modules.run_graph import is_refusal

        reason = "no engine evaluates it"
        for executor in self.executors(plan):
            try:
                undetermined = _undetermined(plan, executor) if determined else ()
                if undetermined:
                    return None, f"its plan may give other rows: {undetermined[0]}"
                return executor.arrow(_distinct_columns(plan.root)), ""
            except Exception as error:
                if not is_refusal(error):
                    raise
                reason = clean_failure(error)
        return None, reason

    def keep_again(self, path: str, name: str, table: Any) -> BoundaryRelation:
        """Put rows that a relation has without some records into a temporary file.

        Args:
            path: The relation.
            name: What the rows are called by, which no other relation is.
            table: The rows.
        """
        plan = self._plans[path]
        self._keep(name, table, plan.root.columns if isinstance(plan.root, Write) else (), ())
        return BoundaryRelation(name, schema="", **self._files_of(name))

    def over_relations(self, path: str, change: Callable[[Relation, str], Node]) -> Plan:
        """The plan of a relation with a change applied to every leaf that reads a relation, with its path."""
        places = {file.uri: made for made, found in self.readable.items() for file in found.files}
        plan = self._plans[path]
        return replace(
            plan,
            root=with_relations(
                plan.root, lambda leaf: change(leaf, places[leaf.files[0].uri]) if leaf.files else leaf
            ),
        )

    def _keep(self, path: str, table: Any, columns: Sequence[str], tokens: tuple[str, ...]) -> None:
        """Put rows into a temporary file that stands for a relation."""
        import pyarrow.parquet as pq

        file = self.scratch / f"{len(self.readable)}.parquet"
        pq.write_table(table.rename_columns(list(columns)), file)
        facts = file.stat()
        own = File(0, file.as_uri(), facts.st_size, facts.st_mtime_ns // 1_000_000)
        self.readable[path] = ReadableFile((own,), tuple(columns), (), False, tokens)

    # ---- plans ------------------------------------------------------------------------------------------------------

    def _leaf(self, at: int, leaf: Relation, ids: Ids) -> Node:
        """What a leaf read, from files that can be read.

        Raises:
            NotExact: There are none.
        """
        pieces = self.layout.pieces.get((at, leaf.leaf), ())
        if not has_files(leaf):
            raise NotExact(f"the files of {leaf.dataset} are not known")
        if not pieces:
            return LocalRows(leaf.leaf, leaf.columns, ())
        if len(pieces) == 1:
            return self._piece(leaf, *pieces[0])
        parts = [self._piece(_copied(leaf, ids), path, files) for path, files in pieces]
        return Union(tuple(parts), leaf.columns)

    def _piece(self, leaf: Relation, path: str, files: tuple[File, ...]) -> Relation:
        if path in self.lost:
            raise NotExact(f"it read {path.rpartition('@')[0] or path}, which is lost: {self.lost[path]}")
        found = self.readable[path]
        if found.is_own:
            there = {place_of(file): file.uri for file in found.files}
            if not all(place_of(file) in there for file in files):
                raise NotExact(f"it read files of {path} that are not known")
            return replace(leaf, files=tuple(replace(file, uri=there[place_of(file)]) for file in files))
        self._require_whole(leaf, path, files)
        missing = [each.name for each in leaf.columns if each.name not in found.columns]
        if missing:
            raise NotExact(f"{path}, evaluated again, has no column {missing[0]}")
        schema = Struct(tuple(Field(each.name, each.type) for each in leaf.columns))
        return replace(leaf, format="parquet", files=found.files, schema=schema, partitioned=(), options=())

    def _require_whole(self, leaf: Relation, path: str, files: tuple[File, ...]) -> None:
        """Refuse to read a part of what was evaluated again, or rows that were not written as they are.

        Raises:
            NotExact: The leaf read that.
        """
        makers = {made: at for at, made in self.layout.outputs.items()}
        if leaf.metadata:
            raise NotExact(f"it read where in {path} its rows are, which is gone")
        if path not in makers:
            return  # pieces of what was there before are always whole
        if not all(file.uri.endswith(".parquet") for file in files):
            raise NotExact(f"it read {path} in a format that changes values")
        writer = self.layout.program.actions[makers[path]]
        # A write that was overwritten before its files could be listed has only Spark's count of them.
        made = len(written_files(writer)) or writer.run.outputs[0].files
        if made != len(files):
            raise NotExact(f"it read some of the files of {path}, which are gone")

    # ---- rows -------------------------------------------------------------------------------------------------------

    def _run(self) -> WorkflowRun:
        """The run over the files that were found, without outputs that are lost."""
        run = self.layout.run
        relations = {path: replace(each, **self._files_of(path)) for path, each in run.relations.items()}
        invocations = tuple(
            replace(
                each, kept=tuple(name for name, path in each.outputs if name in each.kept and path not in self.lost)
            )
            for each in run.invocations
        )
        return replace(run, relations=relations, invocations=invocations)

    def _files_of(self, path: str) -> dict[str, Any]:
        found = self.readable.get(path)
        if found is None:
            return {"files": ()}
        return {
            "files": tuple(RelationFile(file.uri, file.size, file.modified) for file in found.files),
            "format": "parquet",
        }

    def _read(self, path: str) -> RelationRows:
        source = self.layout.sources.get(path)
        if path in self.lost:
            label = path if source is None else f"{source.leaf.dataset}@{source.version}"
            return replace(_LOST, tokens=[label])
        found = self.readable[path]
        if source is None:
            return output_rows(found)
        if found.tokens or not found.is_own:
            return RelationRows((), [], (len(found.tokens),), found.tokens)
        return source_rows(found, source.leaf.dataset, source.version)


@contextmanager
def opened_program(layout: ProgramLayout) -> Iterator[tuple[WorkflowRun, ProgramFiles]]:
    """The run of a program over files that can be read, and its plans; temporary files go with the context."""
    with TemporaryDirectory(prefix="govtool-program-") as folder:
        files = ProgramFiles(layout, Path(folder))
        yield files.prepare(), files


def _leaf_of(found: ReadableFile, dataset: str) -> Relation:
    return Relation(0, dataset, "parquet", found.files, (), Struct(()))


def _has_columns(found: ReadableFile) -> bool:
    """Return whether files have the columns that were written."""
    import pyarrow.parquet as pq

    wanted = set(found.columns) - set(found.partitioned)
    paths = (local_path(file.uri) for file in found.files)
    return all(path is not None and wanted <= set(pq.read_schema(path).names) for path in paths)


def _as_write(root: Node, path: str) -> Write:
    """A plan as one that writes: rows that went to the driver have columns of different names."""
    if isinstance(root, Write):
        return root
    names: list[str] = []
    for column in outputs(root):
        name, number = column.name, 1
        while name in names:
            number += 1
            name = f"{column.name}_{number}"
        names.append(name)
    return Write(root, path, "parquet", "overwrite", tuple(names))


def _undetermined(plan: Plan, executor: Executor) -> tuple[str, ...]:
    """Why a plan may give other rows another time."""
    from govtool.records.replay.decided import undecided
    from govtool.records.trace.traced_plan import TracedPlan

    root = _distinct_columns(plan.root)
    traced = TracedPlan.of(root, executor)
    return undecided(traced, normalized(root, traced.ids))


def _distinct_columns(root: Node) -> Node:
    """The rows of a plan, each column under an id of its own."""
    if not isinstance(root, Write):
        return root
    ids = spare_ids(root.child)
    named = [ids.named(name, column) for name, column in zip(root.columns, outputs(root.child), strict=True)]
    return Project(root.child, tuple(named))


def _copied(leaf: Relation, ids: Ids) -> Relation:
    """A leaf under ids of its own."""
    columns = tuple(ids.attribute(each.name, each.type) for each in leaf.columns)
    renamed = {old.id: new.id for old, new in zip(leaf.columns, columns, strict=True)}
    marks = tuple((renamed.get(number, number), mark) for number, mark in leaf.metadata)
    return replace(leaf, columns=columns, metadata=marks)
