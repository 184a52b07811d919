"""The records of a DataFrame within its own session, before anything of it was written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.records.engines import own_files
from govtool.app.records.keys import declared_keys
from govtool.app.records.tables import dataset_id
from govtool.app.records.written_files import titled
from govtool.config import load_config
from govtool.errors import UsageError
from govtool.records.execute.chain import ExecutorChain, PlanEngine
from govtool.records.execute.functions import registry
from govtool.records.execute.inputs import changed, relations
from govtool.records.execute.spark_executor import SparkExecutor, require_running
from govtool.records.leaves import with_files, with_relations
from govtool.records.lineage import Lineage
from govtool.records.plan.nodes import Relation
from govtool.records.split_plans import listing_version
from govtool.records.spooled_plans import read_frame
from govtool.records.trace.answer import RefusedFile
from govtool.records.trace.normal import spare_ids
from govtool.records.trace.ties import TieCheck
from govtool.records.trace.undetermined import settled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from govtool.records.plan.nodes import Plan
    from govtool.records.plan.tree import Node
    from govtool.records.recordset import RecordSet
    from govtool.records.spooled_plans import Planned
    from govtool.spark.live.records.exact import PlanRecorder

TITLE = "a DataFrame"
"""The output of a plan that was not run."""


def frame_lineage(frame: DataFrame, recorder: PlanRecorder | None) -> RecordSet:
    """Every row of a DataFrame, to be traced in Spark.

    Raises:
        UsageError: The session is not recorded with its plans, or the plan cannot be read or traced.
        EngineError: The session was stopped (``engine.spark``).
    """
    if recorder is None or not hasattr(frame, "_jdf"):
        raise UsageError(
            "the session is not recorded with its plans",
            code="usage.no-records",
            hint="govtool.spark.attach(spark, records=True), in a classic session",
        )
    require_running(frame.sparkSession)
    planned = _planned(frame, recorder)
    if planned.plan is None:
        raise UsageError(f"the DataFrame's plan cannot be read: {planned.reason}", code="usage.no-plan")
    return _lineage(planned.plan, frame.sparkSession, recorder).loose_rows()


def _planned(frame: DataFrame, recorder: PlanRecorder) -> Planned:
    walker = recorder.walker(frame.sparkSession)
    found = walker.read(frame._jdf.queryExecution())
    if not isinstance(found, str):
        raise UsageError(f"the DataFrame's plan cannot be read: {found['break']}", code="usage.no-plan")
    here = {"functions": dict(recorder.functions.known), "rows": recorder.rows.waiting()}
    application = str(frame.sparkSession.sparkContext.applicationId)
    return read_frame(found, walker.version, application, Path(recorder.spool.folder), here)


def _lineage(plan: Plan, session: Any, recorder: PlanRecorder) -> Lineage:
    leaves = relations(plan.root)
    lost = changed(leaves)
    gone = {(each.dataset, each.uri) for each in lost}
    files = {leaf.leaf: [file for file in leaf.files if (leaf.dataset, file.uri) not in gone] for leaf in leaves}
    whole = with_relations(with_files(plan.root, files) if gone else plan.root, _named)
    functions = registry(own_files(Path.cwd()), recorder.functions.live)
    executor = ExecutorChain(
        (PlanEngine("Spark", lambda: SparkExecutor(plan.session, session, functions)),), plan.session
    )
    root = titled(settled(whole, plan.session, TieCheck(executor, spare_ids(whole), whole)))
    return Lineage.in_part(
        root,
        executor,
        output=TITLE,
        refused=tuple(RefusedFile(dataset_id(each.dataset), each.uri, each.reason) for each in lost),
        keys=declared_keys(relations(whole), load_config(Path.cwd()).keys),
    )


def _named(leaf: Relation) -> Node:
    """A leaf under the name that the graph has for its dataset."""
    return replace(leaf, dataset=dataset_id(leaf.dataset), version=leaf.version or listing_version(leaf.files))
