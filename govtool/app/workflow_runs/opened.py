"""A captured run, opened: its plans and files, and circuits over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.errors import EngineError
from govtool.redaction import clean_failure

if TYPE_CHECKING:
    from govtool.app.workflow_runs.programs.replaced import PartitionHistory
    from govtool.model.workflow_run import WorkflowRun
    from govtool.records.plan.nodes import Plan
    from govtool.store import Commit, Reader
    from govtool.workflow.annotate.origins import Origins
    from govtool.workflow.modules.run_circuit import RunCircuit
    from govtool.workflow.modules.run_tuples import RunFiles

_ENGINES = ("pyspark", "py4j", "duckdb", "_duckdb")
"""Modules whose exceptions are about a plan."""


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run whose rows were captured.

    Attributes:
        run: The run.
        files: Its plans and rows.
        has_modules: It is one of a workflow, whose modules can be called again; False: of a program or of SQL.
        cache_id: The part of the cache that its circuits are kept in; empty: they are not kept.
        all_runs: It goes on through the runs that exchange files with it.
        notes: What is to be known of where it begins, and of outputs of which a later write replaced a part.
        histories: The writes into such outputs.
    """

    run: WorkflowRun
    files: RunFiles
    has_modules: bool = True
    cache_id: str = ""
    all_runs: bool = False
    notes: tuple[str, ...] = ()
    histories: tuple[PartitionHistory, ...] = ()

    def circuit(self, wanted: Iterable[str], origins: Origins | None = None) -> RunCircuit:
        """What some relations are made of, in the engine that evaluates most of the plans.

        Args:
            wanted: The paths of the relations.
            origins: Where the origins of cells are put; None: they are not wanted.

        Raises:
            UsageError: A file has changed since the run (``usage.changed``).
            EngineError: There is no engine.
        """
        from govtool.app.workflow_runs.circuit_cache import cached_circuit

        paths = list(wanted)
        first = self._first_plan(paths)
        if not self.cache_id or origins is not None:
            return self._built(paths, first, origins)
        return cached_circuit(
            self.cache_id, self.run, self.files, paths, first.session, lambda: self._built(paths, first, None)
        )

    def _built(self, paths: list[str], first: Plan, origins: Origins | None) -> RunCircuit:
        from govtool.workflow.modules.run_circuit import build_run_circuit

        best: RunCircuit | None = None
        for executor in self.files.executors(first):
            found = build_run_circuit(self.run, self.files, executor, paths, origins)
            if best is None or len(found.coarse) < len(best.coarse):
                best = found
            if not found.inexact:
                break  # another engine would do no better
        if best is None:
            raise EngineError(
                "no engine evaluates plans here",
                code="engine.not-exact",
                hint="pip install 'govtool[records]'",
            )
        return best

    def _first_plan(self, paths: Iterable[str]) -> Plan:
        """A plan whose session evaluates the others; an empty one where there are none, and all is opaque."""
        from govtool.records.plan.nodes import Plan, Session, Union

        plans = (self.files.plan(path) for path in (*paths, *self.run.relations))
        return next((plan for plan in plans if plan is not None), Plan(Union((), ()), Session("", True, "UTC")))


@contextmanager
def engine_errors() -> Iterator[None]:
    """Raise what the engine has against a plan as an error of its own.

    Raises:
        EngineError: The engine fails: a division by zero, a cast of what is no number (``engine.failed``); or it is not
            exact: a column is of a type that it does not have (``engine.not-exact``).
    """
    from govtool.records.sql.dialect import NotExact

    try:
        yield
    except NotExact as error:
        raise EngineError(f"the plans cannot be evaluated again: {error}", code="engine.not-exact") from error
    except Exception as error:
        if not type(error).__module__.startswith(_ENGINES):
            raise
        raise EngineError(
            f"the plans cannot be evaluated again: {clean_failure(error)}", code="engine.failed"
        ) from error


@contextmanager
def opened_run(store: Reader, commit: Commit, name: str, *, all_runs: bool = False) -> Iterator[OpenedRun]:
    """A run of a workflow, of a program or of SQL by its name, with its records; temporary files go with the context.

    Args:
        store: The store.
        commit: Its version.
        name: The name.
        all_runs: As for ``find_recorded_run``.

    Raises:
        UnknownNameError: There is no such run (``usage.unknown-run``).
        AmbiguousNameError: Several begin so (``usage.ambiguous-run``).
        UsageError: It has no records (``usage.no-records``).
    """
    from govtool.app.workflow_runs.programs.recorded import find_recorded_run

    found = find_recorded_run(store, commit, name, all_runs=all_runs)
    with found.opened() as (run, files):
        # The files of a program may be temporary ones, which no later question finds.
        has_modules = found.program is None
        yield OpenedRun(
            run, files, has_modules, store.cache_id if has_modules else "", all_runs, found.notes, found.histories
        )
