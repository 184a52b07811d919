"""Plans of a recorded program evaluated again without some records: what its actions would have written.

A plan counts only if it determines its rows, over what is left as well, and gives what was written where nothing is
left out. Everything else is named as not replayable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.workflow_runs.relation_copies import rows_by_file
from govtool.app.workflow_runs.without_records import Gone, ReplayedRun, required_for
from govtool.model.token import record_id
from govtool.records.plan.expressions import passed
from govtool.records.plan.nodes import Join, LocalRows, Project, Relation
from govtool.records.plan.tree import Node
from govtool.records.plan.types import LONG, Field, Struct
from govtool.records.sql.dialect import NotExact
from govtool.records.trace.carrier import RECORD
from govtool.records.trace.normal import Ids, spare_ids
from govtool.records.trace.segment import alike
from govtool.workflow.queries.statuses import key_of

if TYPE_CHECKING:
    from govtool.app.workflow_runs.programs.files import ProgramFiles
    from govtool.model.workflow_run import BoundaryRelation, ModuleInvocation, WorkflowRun

_OTHER = "its plan does not give again what was written"


@dataclass(frozen=True, slots=True)
class ProgramReplayer:
    """Evaluates the plans of a program again; see ``RunReplayer``, which calls modules.

    Attributes:
        run: The program.
        files: Its plans and rows.
    """

    run: WorkflowRun
    files: ProgramFiles
    _obstacles: dict[str, str] = field(default_factory=dict)

    def without(
        self, gone: Gone, wanted: Iterable[str], folder: Path, known: Mapping[str, BoundaryRelation] | None = None
    ) -> ReplayedRun:
        """Evaluate again without some rows; the arguments are those of ``RunReplayer.without``."""
        found, taken = ReplayedRun(), known or {}
        for each in required_for(self.run, wanted, taken):
            for path in sorted(each.paths):
                if each.is_known:
                    if taken[path].path != path:
                        found.relations[path] = taken[path]
                else:
                    self._make(path, each.invocation, gone, folder, found)
        return found

    def _make(self, path: str, invocation: ModuleInvocation, gone: Gone, folder: Path, found: ReplayedRun) -> None:
        """What an action would have written, where anything that it read is another."""
        read = [each for _, each, _ in invocation.inputs]
        lost = next((found.failed[each] for each in read if each in found.failed), "")
        if not (lost or any(each in gone or each in found.relations for each in read)):
            return
        reason = lost or self._obstacle(path)
        if not reason:
            try:
                plan = self.files.over_relations(path, _Without(self.run, gone, found.relations).leaf)
            except NotExact as error:
                reason = str(error)
            else:
                table, reason = self.files.evaluated(plan)
                if table is not None:
                    found.relations[path] = self.files.keep_again(path, f"{folder.name}/{path}", table)
        if reason:
            found.failed[path] = reason
        else:
            found.invocations.append(invocation)

    def _obstacle(self, path: str) -> str:
        """Why the plan of a relation cannot be evaluated again over what it read; empty: it can."""
        if path not in self._obstacles:
            self._obstacles[path] = self._looked(path)
        return self._obstacles[path]

    def _looked(self, path: str) -> str:
        plan = self.files.plan(path)
        if plan is None:
            return self.files.reason(path)
        table, reason = self.files.evaluated(plan)
        if table is None:
            return reason
        written = self.files.rows(self.run.relations[path])
        again = self.files.rows(self.files.keep_again(path, f"again/{path}", table))
        at = {name: place for place, name in enumerate(again.columns)}
        if set(at) != set(written.columns):
            return _OTHER
        order = [at[name] for name in written.columns]
        rows = Counter(key_of(tuple(row[place] for place in order)) for row in again.values)
        return "" if rows == Counter(map(key_of, written.values)) else _OTHER


@dataclass(frozen=True, slots=True)
class _Without:
    """Leaves of plans over the relations that there are without some records."""

    run: WorkflowRun
    gone: Gone
    made: Mapping[str, BoundaryRelation]

    def leaf(self, leaf: Relation, path: str) -> Node:
        """What a leaf reads.

        Raises:
            NotExact: It reads a part of what was made again, or where its rows are.
        """
        if path in self.made:
            return self._made(leaf, path)
        return self._left(leaf, self.run.relations[path], self.gone[path]) if path in self.gone else leaf

    def _made(self, leaf: Relation, path: str) -> Node:
        if leaf.metadata or {file.uri for file in leaf.files} != {each.uri for each in self.run.relations[path].files}:
            raise NotExact(f"it read a part of {path}, or where its rows are")
        files = tuple(
            replace(leaf.files[0], ordinal=number, uri=each.uri, size=each.size, modified=each.modified, partition=())
            for number, each in enumerate(self.made[path].files)
        )
        schema = Struct(tuple(Field(each.name, each.type) for each in leaf.columns))
        return replace(leaf, format="parquet", files=files, schema=schema, partitioned=(), options=())

    def _left(self, leaf: Relation, relation: BoundaryRelation, rows: Collection[int]) -> Node:
        """The rows of a leaf but some."""
        ordinals = {file.uri: file.ordinal for file in leaf.files}
        packed = tuple(
            (record_id(ordinals[uri], row),)
            for uri, numbers in rows_by_file(relation, rows).items()
            if uri in ordinals
            for row in numbers
        )
        ids: Ids = spare_ids(leaf)
        record, gone = ids.attribute("record", LONG), ids.attribute("gone", LONG)
        read = replace(leaf, columns=(*leaf.columns, record), metadata=(*leaf.metadata, (record.id, RECORD)))
        left = Join(read, LocalRows(0, (gone,), packed), "left_anti", alike(record, gone))
        return Project(left, tuple(map(passed, leaf.columns)))
