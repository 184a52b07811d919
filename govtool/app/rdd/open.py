"""A stored RDD program, opened: its operators with functions of the user's own files, over the files that it read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.rdd.programs import leaves_of, log_of, session_of
from govtool.app.records.tables import read_stored
from govtool.errors import EngineError, EvidenceError
from govtool.records.execute.inputs import changed, local_path
from govtool.records.split_plans import relation_of
from govtool.records.trace.answer import RefusedFile

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.records.plan.nodes import Relation, Session
    from govtool.records.sidecar.lookup import SidecarUse
    from govtool.spark.rdd.context import LineageContext
    from govtool.spark.rdd.log import RddNode
    from govtool.store import Commit, Reader


@contextmanager
def run_again() -> Iterator[None]:
    """State what a program raises that is run again.

    Raises:
        EngineError: It fails, though the job that was recorded did not (``engine.failed``).
    """
    try:
        yield
    except Exception as error:
        from govtool.spark.rdd.rerun import failed_again, is_of_spark

        if not is_of_spark(error):
            raise
        raise failed_again(error) from error


@dataclass(frozen=True, slots=True)
class OpenedProgram:
    """A stored program that can be traced.

    Attributes:
        run: What the store holds of it.
        context: Runs its operators.
        node: The operator of its result.
        leaves: The text files that it read, by the number of the operator in the log.
        output: The files that it wrote, if they are still what was written.
        refused: Files that are gone or have changed.
        session: What conditions are evaluated in.
        sidecars: None are used; traces of programs have no keys to look up.
    """

    run: RecordRun
    context: LineageContext
    node: RddNode
    leaves: dict[int, Relation]
    output: Relation | None
    refused: tuple[RefusedFile, ...]
    session: Session
    sidecars: SidecarUse

    @property
    def name(self) -> str:
        """The output, or the run whose rows went to the driver."""
        return self.run.output or self.run.run

    def leaf(self, node: RddNode) -> Relation | None:
        """The text files of a source; None of another."""
        return self.leaves.get(node.details.get("entry", -1))

    def source_name(self, node: RddNode) -> str:
        """The dataset of a source, as the graph calls it; records of the driver are named by their operator."""
        leaf = self.leaf(node)
        return leaf.dataset if leaf is not None else f"rows-{node.details.get('entry', 0)}"


def open_program(
    store: Reader, commit: Commit, run: RecordRun, replaced: Mapping[str, str] | None = None
) -> OpenedProgram:
    """Build the operators of a stored program again.

    Args:
        store: The store.
        commit: Programs are those of this commit.
        run: The write, or the action whose result went to the driver.
        replaced: By input the text file, or the folder of such, that is read instead.

    Raises:
        EvidenceError: A function is not found again, or records of an input were not kept (``evidence.program-lost``).
        EngineError: Spark is missing, or does not start.
        UsageError: Private values of the program were removed from the store (``usage.forgotten``).
    """
    from govtool.app.records.forgotten import naming_the_commit
    from govtool.records.sidecar.lookup import SidecarUse

    with naming_the_commit(store, commit, run):
        log = log_of(run, *read_stored(store, commit, run))
    leaves = {leaf.leaf: leaf for leaf in leaves_of(run) if leaf.dataset not in (replaced or ())}
    for leaf in leaves_of(run):
        if leaf.leaf not in leaves:
            entry = log["nodes"][leaf.leaf]
            entry["path"] = (replaced or {})[leaf.dataset]
            entry.pop("files", None)
    refused = tuple(RefusedFile(each.dataset, each.uri, each.reason) for each in changed(leaves.values()))
    written = relation_of(run.written, run.output)
    output = written if written is not None and not changed([written]) else None
    context, node = _rebuilt(log)
    if log["taken"] is not None:
        node = context.taken(node, log["taken"])
        node.details["entry"] = -1
    if output is not None and not refused:
        _compare_with(node, output)
    context.result(node)
    return OpenedProgram(run, context, node, leaves, output, refused, session_of(run), SidecarUse())


def _rebuilt(log: dict[str, Any]) -> tuple[LineageContext, RddNode]:
    from govtool.app.records.engines import local_spark, own_files

    try:
        from govtool.spark.rdd import saved
        from govtool.spark.rdd.context import lineage_context
        from govtool.spark.rdd.session import active_session

        session = active_session()
    except ImportError as error:
        raise EngineError(
            "Spark traces RDD programs, and pyspark is not installed",
            code="engine.spark",
            hint="pip install 'govtool[spark]'",
        ) from error
    _refuse_missing(log)
    context = lineage_context(session or local_spark())
    found, lost = saved.rebuilt(log, context, own_files(Path.cwd()))
    if "" in lost:
        raise EvidenceError(lost[""], code="evidence.program-lost", hint=saved.EAGER)
    return context, found[""]


def _refuse_missing(log: dict[str, Any]) -> None:
    """Refuse questions that the log cannot answer, before a Spark session is started.

    Raises:
        EvidenceError: ``evidence.program-lost``.
    """
    from govtool.spark.rdd import saved

    reason = next((entry["missing"] for entry in log["nodes"] if "missing" in entry), None)
    if reason is not None:
        raise EvidenceError(str(reason), code="evidence.program-lost", hint=saved.EAGER)


def _compare_with(node: RddNode, output: Relation) -> None:
    """Have a re-run compared with the written files, where their names can be handed to Hadoop."""
    from govtool.spark.rdd.saved import UNREADABLE

    paths = {file.uri if (path := local_path(file.uri)) is None else str(path): file for file in output.files}
    if paths and not any(map(UNREADABLE.search, paths)):
        node.details["written"] = ",".join(paths)
        node.details["written_files"] = {path: (file.size, file.modified) for path, file in paths.items()}
