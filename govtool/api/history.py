"""Questions of a graph about its history: commits, runs, coverage, and what differs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from govtool.api.arguments import Day, Ref, Share, checked, paths
from govtool.api.opened import OpenedVersion

if TYPE_CHECKING:
    from govtool.answers.commits import CommitAnswer, LogAnswer
    from govtool.answers.compare import ComparisonAnswer
    from govtool.answers.compare_oracle import OracleAnswer
    from govtool.answers.coverage_report import CoverageAnswer
    from govtool.answers.diff import DiffAnswer
    from govtool.answers.index import IndexResult
    from govtool.answers.run_diff import RunDiffAnswer
    from govtool.answers.runs import ProvenanceAnswer, RunAnswer, RunsAnswer
    from govtool.answers.sources import SourcesAnswer
    from govtool.answers.verify import VerifyAnswer
    from govtool.api.arguments import Paths
    from govtool.app.datasets.snapshot import Progress as FilesProgress
    from govtool.app.project.requests import PathArgument
    from govtool.app.questions.columns import PolicyChoice

_Result = TypeVar("_Result")


@checked
def log(
    store: PathArgument | None = None, *, branch: str | None = None, limit: int | None = None, coverage: bool = False
) -> LogAnswer:
    """Return the commits of a branch, newest first; none for a store without commits.

    Args:
        store: A path or URI; by default that of the settings.
        branch: The branch; by default ``main``.
        limit: The number of commits at most; by default all.
        coverage: Whether to read the coverage of each commit, with the reasons why it is not complete.

    Raises:
        StoreError: there is no store, or it cannot be read.
        UnknownNameError: there is no such branch.
    """
    from govtool.app.project.project import existing_branch, read_store
    from govtool.app.questions.history import log_answer

    reader = read_store(None if store is None else os.fspath(store))
    return log_answer(reader, reader.head(existing_branch(reader, branch)), limit, coverage=coverage)


class HistoryQuestions(OpenedVersion):
    """The part of ``Graph`` that asks for commits, runs and coverage."""

    @checked
    def log(self, *, limit: int | None = None, coverage: bool = False) -> LogAnswer:
        """The commits up to this version, newest first.

        Args:
            limit: Commits to return at most; by default all.
            coverage: Whether to read the coverage of each commit, with the reasons why it is not complete.

        Raises:
            StoreError: a commit cannot be read.
        """
        from govtool.app.questions.history import log_answer

        return log_answer(self._reader, self._commit, limit, coverage=coverage)

    @checked
    def sources(self) -> SourcesAnswer:
        """The sources of this version: the kind and place of each, its last commit and its coverage.

        Raises:
            StoreError: a fragment or a commit cannot be read.
        """
        from govtool.app.project.listed_sources import unlisted_sources
        from govtool.app.project.sources import list_sources

        unlisted = unlisted_sources(self._reader, self._commit)
        return replace(list_sources(self._reader, self._commit), unlisted=unlisted)

    @checked
    def show(self, ref: Ref | None = None) -> CommitAnswer | RunAnswer | ProvenanceAnswer:
        """One commit, one run, or everything that a version of a dataset was made of.

        Args:
            ref: A commit: ``HEAD~1``, a number, an id, a tag or a date. A run: its id, or ``JOB`` or ``JOB~1``. A
                version of a dataset: ``orders@3``, ``orders@DIGEST``, ``orders@2026-11-20``. By default the commit
                of this version.

        Raises:
            UnknownNameError: nothing is called so.
            AmbiguousNameError: several runs or datasets are.
        """
        from govtool.app.questions.history import show_answer

        return show_answer(self._reader, _name(ref), self._commit, self._branch)

    @checked
    def run(self, id: str) -> RunAnswer:
        """One run: what it read and wrote, with which software and settings.

        Args:
            id: The id of the run, the beginning or end of it, or ``JOB`` or ``JOB~1`` for the last runs of a job.

        Raises:
            UnknownNameError: no run is called so (``usage.unknown-run``).
            AmbiguousNameError: several are (``usage.ambiguous-run``).
        """
        from govtool.app.questions.history import run_answer

        return run_answer(self._reader, id, self._commit)

    @checked
    def runs(
        self,
        job: str | None = None,
        *,
        status: str | None = None,
        dataset: str | None = None,
        software: str | None = None,
        since: Day | None = None,
        limit: int | None = None,
    ) -> RunsAnswer:
        """The runs of this version, the newest first.

        Args:
            job: Only runs of this job; a glob.
            status: Only ``complete``, ``failed``, ``aborted``, ``running`` or ``unknown`` runs.
            dataset: Only runs that read or wrote it; a glob.
            software: Only runs that used it: ``pandas``, ``pandas<2.1``.
            since: Only runs that started on this day or later: ``2026-11-20``.
            limit: Runs to return at most; by default all.

        Raises:
            UsageError: there is no such status, or ``software`` or ``since`` cannot be read.
        """
        from govtool.app.questions.history import runs_answer
        from govtool.app.runs.lookup import RunFilter

        return runs_answer(self._reader, RunFilter(job, status, dataset, software, _name(since)), self._commit, limit)

    @checked
    def diff(
        self,
        old: Ref | None = None,
        new: Ref | None = None,
        *,
        policy: Paths | None = None,
        today: Day | None = None,
        limit: int | None = None,
        rows: bool = False,
        tolerance: Share | None = None,
    ) -> DiffAnswer | RunDiffAnswer:
        """Compare two versions of the graph, or two runs of a job.

        Versions differ in datasets, columns, edges, facts, runs and versions of datasets.

        Args:
            old: A commit or a run; by default the commit before this one.
            new: A commit or a run; by default this version.
            policy: Compare the classes and findings of these policies, too: files, folders and ``pack:NAME``.
            today: The day on which waivers and approvals are judged; by default today (UTC).
            limit: Changes between two versions to return at most, or with ``rows`` the rows of each kind; by default
                all.
            rows: Of two recorded runs, the rows of their outputs that differ, too, with the input rows behind them.
            tolerance: With ``rows``, floats that are so close are equal, as a share of them; by default they are equal
                up to the order of a sum (nine digits).

        Raises:
            UnknownNameError: no commit and no run is called so.
            UsageError: one of them is a commit and the other a run, or the policies or the tolerance
                are mistaken.
        """
        from govtool.answers.diff import DiffAnswer
        from govtool.app.questions.history import diff_answer
        from govtool.app.row_diff.tolerance import checked_tolerance

        rules = _rules(policy, today)
        tolerance = checked_tolerance(tolerance, rows)
        answer = _retried(
            lambda: diff_answer(
                self._reader,
                _name(old),
                _name(new),
                self._commit,
                self._branch,
                policies=rules,
                progress=self._progress,
                rows=rows,
                limit=limit,
                tolerance=tolerance,
            )
        )
        return answer.head(limit) if isinstance(answer, DiffAnswer) else answer

    @checked
    def coverage(self, *, details: bool = True) -> CoverageAnswer:
        """Measure how much was understood, by source, with the top reasons for incomplete coverage.

        Args:
            details: Read every diagnostic, too.

        Raises:
            StoreError: a fragment cannot be read.
        """
        from govtool.app.questions.history import coverage_answer

        return coverage_answer(self._reader, self._commit, details=details)

    @checked
    def compare_static(self) -> ComparisonAnswer:
        """Compare lineage from text with lineage from runs: dead SQL, and dynamic code.

        Raises:
            UsageError: this version has only texts, or only runs (``usage.no-evidence``).
        """
        from govtool.app.questions.history import comparison_answer

        return _retried(lambda: comparison_answer(self._reader, self._commit, self._progress))

    @checked
    def compare_oracle(
        self,
        files: Paths,
        *,
        oracle: str = "auto",
        differences: bool = False,
        limit: int | None = None,
    ) -> OracleAnswer:
        """Compare the graph with a warehouse's own records: edges that agree, and edges of one side only.

        Args:
            files: Exports of Snowflake's ACCESS_HISTORY or Databricks' column_lineage.
            oracle: ``snowflake`` or ``databricks``; ``auto`` tells them apart by content.
            differences: Leave out what agrees.
            limit: Edges to return at most; by default all.

        Raises:
            UsageError: a file is no export that is known, or cannot be read.
            EvidenceError: the exports and the graph have no dataset in common.
        """
        from govtool.app.project.requests import texts
        from govtool.app.questions.compare import compare_oracle

        places = [Path(file) for file in texts(files)]
        answer = self._fetch(
            lambda found: compare_oracle(found.index, found.version, places, oracle, differences=differences)
        )
        return answer.head(limit)

    @checked
    def verify(
        self, place: PathArgument, *, name: str | None = None, rows: bool = False, progress: FilesProgress | None = None
    ) -> VerifyAnswer:
        """Compare data with what was recorded of it.

        Args:
            place: A file, a folder, a Delta or Iceberg table, ``s3://…``, or a dataset of the graph.
            name: The dataset's name in the graph, where it is not that of its place.
            rows: Where the files differ, compare digests of the rows, whatever their order and files.
            progress: Called with files read and files in all.

        Raises:
            UsageError: there is no data and nothing was recorded (``usage.no-data``), or the place of a dataset is not
                known (``usage.place``).
            StoreError: the data cannot be read.
        """
        from govtool.app.datasets.verify import verify_data

        return verify_data(self._reader, self._commit, os.fspath(place), name, progress, rows=rows)

    @checked
    def index(self, engine: str = "local", master: str | None = None) -> IndexResult:
        """Build the local index ahead of the first question, and return its sizes.

        Args:
            engine: ``local``, or ``spark`` for graphs larger than a machine's memory; the index is the same.
            master: Spark's master, if it has to be started.

        Raises:
            UsageError: there is no such engine.
            EngineError: Spark is missing or failed.
            StoreError: a fragment cannot be read.
        """
        from govtool.answers.index import IndexResult
        from govtool.app.project.spark_session import check_engine

        check_engine(engine, master)
        if engine == "spark":
            from govtool.app.versions.index import index_on_spark

            index_on_spark(self._reader, self._commit, master)

        index = self.snapshot().index
        index.resident()
        datasets = index.dataset_count
        return IndexResult(self._commit, datasets, index.node_count - datasets, index.edge_count)


def _rules(policy: Paths | None, today: Day | None) -> PolicyChoice | None:
    """The policies that are given, if any."""
    from govtool.app.questions.columns import PolicyChoice
    from govtool.app.questions.governance import day_of

    return PolicyChoice(paths(policy), day_of(today)) if policy else None


def _name(given: Ref | None) -> str | None:
    """A commit, a run or a day as a text."""
    return None if given is None else str(given)


def _retried(question: Callable[[], _Result]) -> _Result:
    """Answer a question; once more if it failed on an index of the cache that turns out to be damaged."""
    from govtool.app.versions.index import damaged_since

    try:
        return question()
    except Exception:
        if not damaged_since():
            raise
    return question()
