"""Upkeep of a store as commands use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from govtool.app.project.project import existing_branch
from govtool.app.project.user import user_name
from govtool.errors import IntegrityError, StoreError, UnknownNameError
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.store import Commit, CommitResult, FragmentRef, Reader, Store
    from govtool.store.upkeep.copy import Copied
    from govtool.store.upkeep.fsck import Check, Problem
    from govtool.store.upkeep.gc import Collection

Progress = Callable[[int, int], None]


def compact(store: Store, branch: str | None, author: str | None) -> CommitResult:
    """Rewrite the manifest of a branch without what is dead."""
    from govtool.store.upkeep import compact

    return compact.compact(store, existing_branch(store, branch), author=author or user_name())


def repair_clock(store: Store, branch: str | None, author: str | None) -> CommitResult:
    """Take over what commits of a clock in the future say, at the time of now."""
    from govtool.store.upkeep import repair_clock

    return repair_clock.repair_clock(store, existing_branch(store, branch), author=author or user_name())


def collect(store: Store, *, hours: float, dry_run: bool, progress: Progress) -> Collection:
    """Remove objects that nothing refers to and that are older than some hours."""
    from govtool.store.upkeep import gc

    return gc.collect(store, grace=timedelta(hours=hours), dry_run=dry_run, progress=progress)


def check(store: Store, *, anchor: str | None, contents: bool, deep: bool = False, progress: Progress) -> Check:
    """Check a store, against an anchor if there is one.

    Args:
        store: The store.
        anchor: Of an earlier time.
        contents: Read every fragment, and decode those of recorded runs.
        deep: Build published indexes again and compare them.
        progress: Called with (fragments checked, fragments).
    """
    from govtool.store.upkeep import fsck

    against = fsck.parse_anchor(anchor) if anchor is not None else None
    result = fsck.fsck(store, against=against, contents=contents, progress=progress)
    records = list(_record_problems(store)) if contents else []
    # Of an object with one fragment, what is known of its runs says more.
    named = {(problem.code, problem.key) for problem in records if problem.key.startswith("frag/")}
    problems = [problem for problem in result.problems if (problem.code, problem.key) not in named]
    problems += [*records, *(_index_problems(store) if deep else ())]
    return replace(result, problems=tuple(sorted(set(problems))))


def runs_without_values(store: Store) -> tuple[str, ...]:
    """Recorded runs, by application, whose private values were removed from the store (``store forget --run``)."""
    from govtool.app.records.forgotten import forgotten_applications
    from govtool.store import branches

    heads = [store.head(branch.name) for branch in branches.list_branches(store)]
    return tuple(sorted({run for head in heads if head for run in forgotten_applications(store, head)}))


def _record_problems(store: Store) -> Iterator[Problem]:
    """Fragments of recorded runs that cannot be read: of which runs they are, and what to do."""
    from govtool.app.upkeep.record_fragments import mistaken_runs, read_record_fragments, unreadable_runs
    from govtool.app.upkeep.workflow_fragments import damaged_workflow_runs
    from govtool.store.upkeep.fsck import Problem

    try:
        found = read_record_fragments(store)
    except StoreError:  # of a slot, a node or a tombstone, which is a problem of its own
        return
    for name, why in sorted(found.damaged.items()):
        ref, runs = found.refs[name], found.runs_of(name)
        whose = few(runs) or "runs that are not known"
        yield Problem(
            "store.corrupt-fragment", ref.key, f"{ref.table} of {ref.source}, of {whose}: {why}", _remedy(ref, runs)
        )
    unreadable = ((name, run.run, why) for name, run, why in unreadable_runs(found))
    for name, run, why in (*unreadable, *mistaken_runs(found)):
        ref = found.refs[name]
        yield Problem(
            "store.corrupt-fragment", ref.key, f"{ref.table} of {ref.source}, of {run}: {why}",
            f"run the program again with --records, or remove its source: govtool store forget --source '{ref.source}'",
        )  # fmt: skip
    for each in damaged_workflow_runs(store):
        ref = each.damage.ref
        message = f"{ref.table} of {ref.source}: {each.damage.why}"
        yield Problem("store.corrupt-fragment", ref.key, message, _remedy(ref, ()))


def _remedy(ref: FragmentRef, runs: Sequence[str]) -> str:
    from govtool.model.records import PRIVATE

    forget = f"--run {runs[0]}" if runs and ref.table.startswith(PRIVATE) else f"--source '{ref.source}'"
    return f"restore this object from a backup or a copy of the store, or: govtool store forget {forget}"


def check_published_index(store: Reader, commit: Commit) -> None:
    """Build a commit's index again, and refuse a published one that is another; the cache then has none of the commit.

    Raises:
        IntegrityError: The published index is not that of the commit (``store.corrupt-index``).
        StoreError: The store cannot be read.
    """
    from govtool.app.versions.index import built_index, discard_cached
    from govtool.app.versions.published import index_problem
    from govtool.store.published import folder

    problem = index_problem(store, commit, lambda: built_index(store, commit))
    if problem is not None:
        discard_cached(store, commit)
        raise IntegrityError(
            f"the published index is not that of commit {commit.seq}: {problem}",
            code="store.corrupt-index",
            location=store.uri,
            hint=f"remove {folder(commit.content_id)}/ from the store, then govtool index --publish;"
            " govtool store fsck --deep looks at those of all commits",
        )


def _index_problems(store: Store) -> Iterator[Problem]:
    """Published indexes that are not those of their commits: of each that a commit names, and of what none names."""
    from govtool.app.versions.index import built_index, discard_cached
    from govtool.app.versions.published import index_problem
    from govtool.store.published import FOLDER, folder
    from govtool.store.upkeep.fsck import Problem

    for commit in _naming_commits(store):
        try:
            message = index_problem(store, commit, partial(built_index, store, commit))
        except StoreError as error:
            message = error.message
        if message is not None and commit.published is not None:
            discard_cached(store, commit)
            yield Problem("store.corrupt-index", folder(commit.published.commit), message)
    for commit_id in sorted({info.key.split("/")[1] for info in store.objects.scan(FOLDER)}):
        try:
            store.resolve(commit_id)
        except UnknownNameError:
            yield Problem("store.corrupt-index", folder(commit_id), "there is no such commit")
        except StoreError as error:
            yield Problem("store.corrupt-index", folder(commit_id), error.message)


def _naming_commits(store: Store) -> Iterator[Commit]:
    """A commit for each name of a published index: readers of any of them take that index."""
    from govtool.store.refs import branch_names

    found = set()
    for branch in branch_names(store.objects):
        try:
            for commit in store.history(store.head(branch)):
                if commit.published is not None and commit.published not in found:
                    found.add(commit.published)
                    yield commit
        except StoreError:  # a hole, which fsck has among its problems
            continue


def anchor_text(store: Store, branch: str) -> str:
    """The anchor of a branch's head as one line."""
    from govtool.store.upkeep import fsck

    return fsck.anchor(store, branch).text


def copy(store: Store, target: str, *, progress: Progress) -> tuple[Copied, str]:
    """Copy a store to an address; also gives the address as it is shown."""
    from govtool.store.backends.location import open_objects
    from govtool.store.upkeep.copy import copy_store

    objects = open_objects(target, create=True)
    return copy_store(store, objects, progress=progress), objects.uri
