"""SIGKILL at each write of each kind of commit: ``python -m bench.attacks.commits STORE KIND K``, at the K-th one."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.attacks.rows import Row, shown

ROUNDS = 15
"""Times that all kinds are committed at once."""
_SOURCES = {"job", "workflow-run:w:w-1", "workflow-run:w:w-2"}

if TYPE_CHECKING:
    from govtool.store import Store
    from govtool.store.upkeep.fsck import Problem


def record(store: Store, number: int = 3) -> None:
    """Commit the records of an application, beside those of earlier ones."""
    from govtool.app.records.tables import RecordTables
    from govtool.records.capture import RecordedWrite
    from govtool.records.plan.nodes import LocalRows, Plan, Session
    from govtool.store import Changes

    plan = Plan(LocalRows(0, (), ((f"secret of {number}",),)), Session("", True, "UTC"))
    tables = RecordTables.of([RecordedWrite(f"app-{number}/0", plan, "out")])
    change = tables.beside(store, store.head(), "job", {f"app-{n}" for n in range(1, number)})
    changes = Changes(("job",), change.added, uploaded=change.kept)
    store.commit(changes, message="job", author="ann", batch=f"job {change.identity}")


def execute(store: Store, number: int = 2) -> None:
    """Commit a run of a workflow."""
    from govtool.app.workflow_runs.stored import commit_workflow_run
    from govtool.model.workflow_run import ModuleInvocation, WorkflowRun

    invocations = (ModuleInvocation(1, "a", "A", number),)
    run = WorkflowRun(
        id=f"w-{number}", workflow="w", status="complete", mode="records", applications=("app-1",), started="2026",
        ended="", error="", edges=(), invocations=invocations, relations={}, whole=1,
    )  # fmt: skip
    commit_workflow_run(store, run, "main")


def forget(store: Store) -> None:
    """Remove the private values of a run."""
    from govtool.app.upkeep.forget import ForgetRequest, forget_text

    forget_text(store, ForgetRequest(runs=("app-1",), author="ann"))


def forget_source(store: Store) -> None:
    """Remove a source from all versions, if it is there still."""
    from govtool.app.upkeep.forget import ForgetRequest, forget_text
    from govtool.errors import UnknownNameError

    with suppress(UnknownNameError):
        forget_text(store, ForgetRequest(sources=("notes",), author="ann"))


def repair(store: Store) -> None:
    """Repair a branch whose newest commits are in the future."""
    from govtool.store.upkeep import repair_clock

    repair_clock.repair_clock(store, author="ann")


def tag(store: Store) -> None:
    """Make a tag, let another name a later commit, and remove a third."""
    from govtool.store import tags

    head = store.head()
    assert head is not None
    tags.create_tag(store, "new", head, author="ann", replace=True)
    tags.create_tag(store, "moved", head, author="ann", replace=True)
    if "gone" in _tags(store):
        tags.delete_tag(store, "gone")


KINDS: Mapping[str, Callable[[Store], None]] = {
    "records of runs": record,
    "executions of workflows": execute,
    "forget --run": forget,
    "forget --source": forget_source,
    "repair-clock": repair,
    "tags": tag,
}


def commits() -> Iterator[Row]:
    """Kill each kind of commit at every write; then read everything, and run the same again."""
    for kind in KINDS:
        outcome: Counter[str] = Counter()
        with tempfile.TemporaryDirectory(prefix="commits-") as folder:
            base = Path(folder, "base")
            _prepare(str(base), is_future=kind == "repair-clock")
            before, after = _content(str(base)), _finished(base, Path(folder, "whole"), kind)
            kills = 0
            while _is_killed(base, Path(folder, f"{kills + 1}"), kind, kills + 1):
                kills += 1
                outcome.update(_problems(Path(folder, f"{kills}"), kind, before, after))
        good = "the old version or the new one, everything reads, fsck clean; the same again makes the new one"
        yield Row("commits", f"SIGKILL at every write of: {kind}", kills, shown(outcome, good))
    yield _together()


def _together() -> Row:
    """Kinds of commits at once, each killed at a random write; then everything is read, and each runs again."""
    outcome: Counter[str] = Counter()
    rng, kills = random.Random(3), 0
    kinds = [kind for kind in KINDS if kind != "repair-clock"]
    with tempfile.TemporaryDirectory(prefix="commits-") as folder:
        for number in range(ROUNDS):
            place = Path(folder, str(number))
            _prepare(str(place), is_future=False)
            running = [subprocess.Popen(_command(place, kind, rng.randint(2, 14))) for kind in kinds]
            kills += sum(process.wait() == -signal.SIGKILL for process in running)
            for kind in kinds:
                KINDS[kind](_open(place))
            live, tags = _content(str(place))
            outcome["fsck found damage"] += bool(_found(_open(place)))
            outcome["something cannot be read"] += not _reads(_open(place))
            outcome["a commit is missing"] += {each[0] for each in live} != _SOURCES or set(tags) != {"new", "moved"}
    attack = f"{len(kinds)} kinds of commits at once, each killed at a random write; then each again"
    return Row("commits", attack, kills, shown(+outcome, "each is there once, everything reads, fsck clean"))


def _prepare(uri: str, *, is_future: bool) -> None:
    from govtool import clock
    from govtool.store import Changes, Fragment, Store, tags, writer

    store = Store.init(uri)
    for number in (1, 2):
        record(store, number)
    execute(store, 1)
    first = store.head()
    assert first is not None
    for name in ("moved", "gone"):
        tags.create_tag(store, name, first, author="ann")
    later = clock.iso(clock.now() + timedelta(days=9))
    for text in (b"a", b"b"):
        changes = Changes(("notes",), (Fragment("notes", "notes", text, 1),))
        timestamp = writer.Writer.timestamp
        if is_future:
            writer.Writer.timestamp = lambda *_: later  # type: ignore[method-assign]
        store.commit(changes, message="m", author="ann", batch=text.decode())
        writer.Writer.timestamp = timestamp  # type: ignore[method-assign]


def _finished(base: Path, place: Path, kind: str) -> Any:
    from govtool.store import Store

    shutil.copytree(base, place)
    KINDS[kind](Store.open(str(place)))
    return _content(str(place))


def _is_killed(base: Path, place: Path, kind: str, k: int) -> bool:
    shutil.copytree(base, place)
    code = subprocess.run(_command(place, kind, k), check=False).returncode
    assert code in (0, -signal.SIGKILL), code
    return code != 0


def _command(place: Path, kind: str, k: int) -> list[str]:
    return [sys.executable, "-m", "bench.attacks.commits", str(place), kind, str(k)]


def _open(place: Path) -> Store:
    from govtool.store import Store

    return Store.open(str(place))


def _problems(place: Path, kind: str, before: Any, after: Any) -> Iterator[str]:
    """What is wrong with a store whose writer was killed."""
    from govtool.store import Store

    store = Store.open(str(place))
    if _content(str(place)) not in (before, after) and kind != "tags":  # which are three changes
        yield "half a commit is visible"
    # What was to be removed may be there still, and the clock in the future.
    if {each.code for each in _found(store)} - {"store.forgotten", "store.clock"}:
        yield "fsck found damage"
    if not _reads(store):
        yield "something cannot be read"
    KINDS[kind](Store.open(str(place)))
    if _content(str(place)) != after:
        yield "the same again gave something else"
    if _found(Store.open(str(place))):
        yield "fsck found damage after the same again"


def _found(store: Store) -> Sequence[Problem]:
    from govtool.app.upkeep.store import check

    return check(store, anchor=None, contents=True, progress=lambda *_: None).problems


def _reads(store: Store) -> bool:
    """Return whether all that any version holds can be read, but for what was removed on purpose."""
    from govtool.errors import StoreError

    for commit in store.log():
        for ref in store.fragments(commit):
            try:
                store.read(ref)
            except StoreError as error:
                if error.code != "store.forgotten":
                    return False
    return True


def _content(uri: str) -> Any:
    """What the head holds, without the tombstones, which have a time, and the numbers of the commits with tags."""
    from govtool.store import Store
    from govtool.store.names import FORGOTTEN

    store = Store.open(uri)
    head = store.head()
    live = {(ref.source, ref.table, ref.sha256) for ref in store.fragments(head)} if head else set()
    return {each for each in live if each[0] != FORGOTTEN}, _tags(store)


def _tags(store: Store) -> dict[str, int]:
    from govtool.store.refs import tag_names

    return {name: store.resolve(name).seq for name in tag_names(store.objects)}


def main(uri: str, kind: str, k: int) -> None:
    """Do one kind of commit, and be killed before its K-th write to the disk."""
    from govtool.store import Store
    from govtool.store.backends import local

    left = k

    def counted(write: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return write(*arguments)

        return call

    local.sync = counted(local.sync)
    local.LocalObjects.delete = counted(local.LocalObjects.delete)  # type: ignore[method-assign]
    KINDS[kind](Store.open(uri))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
