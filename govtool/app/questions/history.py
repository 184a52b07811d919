"""Questions about commits, runs and coverage, answered: names and options in, an answer out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from govtool.answers.version import GraphVersion
from govtool.app.versions.version import version_of
from govtool.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.answers.commits import CommitAnswer, LogAnswer
    from govtool.answers.compare import ComparisonAnswer
    from govtool.answers.coverage_report import CoverageAnswer
    from govtool.answers.diff import DiffAnswer
    from govtool.answers.run_diff import RunDiffAnswer
    from govtool.answers.runs import ProvenanceAnswer, RunAnswer, RunsAnswer
    from govtool.app.questions.columns import PolicyChoice
    from govtool.app.runs.lookup import RunFilter
    from govtool.app.versions.index import Progress
    from govtool.model.run import Run
    from govtool.store import Commit, Reader


def log_answer(store: Reader, head: Commit | None, limit: int | None = None, *, coverage: bool = False) -> LogAnswer:
    """Return a commit and those before it, newest first.

    Args:
        store: The store.
        head: The newest commit; None: there is none.
        limit: The number of commits at most.
        coverage: Read the coverage of each commit, with the reasons why it is not complete.

    Raises:
        UsageError: the limit is negative (``usage.limit``).
        StoreError: a commit cannot be read.
    """
    from govtool.answers.commits import LogAnswer

    commits = tuple(store.history(head, limit))
    cut = bool(commits) and len(commits) == limit and commits[-1].parent is not None
    reports = None
    if coverage:
        from govtool.app.coverage.sources import read_coverage

        reports = tuple(read_coverage(store, commit) for commit in commits)
    return LogAnswer(store.uri, commits, commits[-1].seq - 1 if cut else 0, reports)


def show_answer(
    store: Reader, ref: str | None, at: Commit, branch: str | None = None
) -> CommitAnswer | RunAnswer | ProvenanceAnswer:
    """Return a commit, a run, or what a version of a dataset was made of.

    Args:
        store: The store.
        ref: A commit, a run, or ``DATASET@VERSION``; None: the commit ``at``.
        at: Runs are those of this commit.
        branch: Where numbers and dates of commits are looked up.

    Raises:
        UnknownNameError: nothing is called so.
        AmbiguousNameError: several are.
    """
    from govtool.app.runs.lookup import run_or_commit
    from govtool.model.run import Run

    if ref is None:
        return _commit_answer(store, at)
    if "@" in ref[1:]:
        return _provenance(store, ref, at)
    found = run_or_commit(store, ref, branch, at)
    return _run_answer(store, found, at) if isinstance(found, Run) else _commit_answer(store, found)


def run_answer(store: Reader, name: str, at: Commit) -> RunAnswer:
    """Return the run of an id, or of the beginning or end of one; ``JOB~1`` is the last but one run of a job.

    Raises:
        UnknownNameError: no run is called so (``usage.unknown-run``).
        AmbiguousNameError: several are (``usage.ambiguous-run``).
    """
    from govtool.app.runs.lookup import find_run, read_history

    return _run_answer(store, find_run(read_history(store, at), name), at)


def runs_answer(store: Reader, wanted: RunFilter, at: Commit, limit: int | None = None) -> RunsAnswer:
    """Return the runs of a commit for which all conditions hold, the newest first.

    Raises:
        UsageError: a condition is mistaken.
    """
    from govtool.answers.runs import RunsAnswer
    from govtool.app.runs.lookup import read_history

    wanted.check()
    history = read_history(store, at)
    found = tuple(wanted.keep(history.runs))
    return RunsAnswer(version_of(store, at), found, len(history.runs)).head(limit)


def diff_answer(
    store: Reader,
    old: str | None,
    new: str | None,
    at: Commit,
    branch: str | None = None,
    *,
    policies: PolicyChoice | None = None,
    progress: Progress | None = None,
    rows: bool = False,
    limit: int | None = None,
    tolerance: float | None = None,
) -> DiffAnswer | RunDiffAnswer:
    """Return what changed between two commits, or why two runs differ.

    Args:
        store: The store.
        old: A commit or a run; None: the commit before the newest one, up to ``at``, that changed the graph.
        new: A commit or a run; None: ``at``.
        at: Runs are those of this commit.
        branch: Where numbers and dates of commits are looked up.
        policies: Policies whose classes and findings are compared, too; they build the index of both commits.
        progress: Called with steps done and steps in all while an index is built.
        rows: Of two runs, the rows of their outputs that differ, too.
        limit: The most rows of each kind that are listed and traced; None: all.
        tolerance: How far floats of these rows may be apart, as a share; None: only by the order of a sum.

    Raises:
        UnknownNameError: nothing is called so.
        AmbiguousNameError: several are.
        UsageError: rows of commits are wanted; one of them is a commit and the other a run, or policies are given with
            runs or are mistaken.
    """
    from govtool.answers.diff import DiffAnswer
    from govtool.answers.run_diff import RunDiffAnswer
    from govtool.app.questions.diff import diff_commits
    from govtool.app.runs.lookup import compare_runs, run_or_commit
    from govtool.model.run import Run
    from govtool.query.versions.diff import Difference

    before: Run | Commit = _before_last_change(store, at) if old is None else run_or_commit(store, old, branch, at)
    after: Run | Commit = at if new is None else run_or_commit(store, new, branch, at)
    if isinstance(before, Run) or isinstance(after, Run):
        if policies is not None:
            raise UsageError("--policy compares commits", code="usage.arguments", hint="leave out --policy")
        found = compare_runs(store, at, before, after)
        if not rows:
            return RunDiffAnswer(version_of(store, at), found)
        from govtool.app.row_diff.compare import row_diff

        return RunDiffAnswer(version_of(store, at), found, row_diff(store, at, found, limit, tolerance))
    if rows:
        raise UsageError(
            "--rows compares runs; these are commits",
            code="usage.arguments",
            hint="govtool diff JOB~1 JOB --rows",
        )
    difference = diff_commits(store, before, after)
    if policies is not None:
        from govtool.app.questions.check import policy_difference
        from govtool.app.versions.opening import open_snapshot

        sides = [open_snapshot(store, commit, progress=progress) for commit in (before, after)]
        difference = Difference.of((*difference.changes, *policy_difference(sides[0], sides[1], policies)))
    return DiffAnswer(store=store.uri, old=before, new=after, difference=difference)


def coverage_answer(store: Reader, at: Commit, *, details: bool = True) -> CoverageAnswer:
    """Return how much was understood by source; with ``details`` also every diagnostic.

    Raises:
        StoreError: a fragment cannot be read.
    """
    from govtool.answers.coverage_report import CoverageAnswer
    from govtool.app.coverage.sources import read_coverage

    report = read_coverage(store, at, with_diagnostics=details)
    return CoverageAnswer(GraphVersion(store.uri, at, report.total), report)


def comparison_answer(store: Reader, at: Commit, progress: Progress | None = None) -> ComparisonAnswer:
    """Return the edges that only texts or only runs know.

    Raises:
        UsageError: the commit has only one of them (``usage.no-evidence``).
        StoreError: a fragment cannot be read.
    """
    from govtool.answers.compare import ComparisonAnswer
    from govtool.app.questions.compare import compare_static_runtime

    result = compare_static_runtime(store, at, progress)
    return ComparisonAnswer(version_of(store, at), result)


def _before_last_change(store: Reader, commit: Commit) -> Commit:
    """The commit before the newest one that changed the graph: upkeep changes nothing.

    Raises:
        UnknownNameError: There is none (``usage.unknown-ref``).
    """
    changed = False
    for each in store.history(commit):
        if changed:
            return each
        changed = bool(each.sources or each.merged)
    raise UnknownNameError(
        f"no commit before {commit.short} has another graph: there is nothing to compare with",
        code="usage.unknown-ref",
        hint="govtool log lists the commits; after the next ingest, govtool diff shows what changed",
    )


def _commit_answer(store: Reader, commit: Commit) -> CommitAnswer:
    from govtool.answers.commits import CommitAnswer

    return CommitAnswer(store.uri, commit, store.fragments(commit))


def _run_answer(store: Reader, run: Run, at: Commit) -> RunAnswer:
    from govtool.answers.runs import RunAnswer
    from govtool.app.records.tables import read_plan_cost, read_positions_cost
    from govtool.app.runs.lookup import read_history, version_names

    history = read_history(store, at)
    readings = tuple(history.readings(run))
    names = version_names(history, (one.version for one in readings if one.version is not None))
    cost = read_positions_cost(store, at, run)
    return RunAnswer(version_of(store, at), run, readings, names, cost, read_plan_cost(store, at, run))


def _provenance(store: Reader, name: str, at: Commit) -> ProvenanceAnswer:
    from govtool.answers.runs import ProvenanceAnswer
    from govtool.app.runs.lookup import named_version, read_history, version_names

    history = read_history(store, at)
    version = named_version(history, name)
    hops = history.ancestors(version)
    names = version_names(history, hops)
    order = sorted(hops.items(), key=lambda item: (item[1], item[0].dataset, -item[0].number))
    entries = tuple((names[one], distance, history.writing(one)) for one, distance in order)
    unwritten = {
        (reading.dataset, writing.run.id)
        for _, _, writing in entries
        for reading in history.readings(writing.run)
        if reading.version is None
    }
    for _, _, writing in entries:
        unwritten.update((read.dataset, writing.run.id) for read in history.unknown_inputs(writing.run))
    return ProvenanceAnswer(version_of(store, at), names[version], entries, tuple(sorted(unwritten)))
