"""The folder of a sequence of executions: versions of state, and the pointer to the last whole execution.

    current.json                       the pointer: replaced atomically, once all modules of an execution ran
    lock                               held while a run goes on
    e000012.1f0c/NODE/RELATION/        what the modules of execution 12 made: outputs and new state, as Parquet
    runs/RUN.json                      a run that is not yet in the store
    runs/RUN/                          its captured plans

Whatever ends a run, the pointer names a whole execution. Folders of executions behind it are left by a run that was
killed; the next run removes them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from govtool.errors import IntegrityError, UsageError
from govtool.model.workflow_run import BoundaryRelation, RelationFile

_CURRENT = "current.json"
_EXECUTION = re.compile(r"e(\d{6,})\.[0-9a-f]{4,}")
FORMAT = 1
"""Version of the pointer."""


@dataclass(frozen=True, slots=True)
class SequencePointer:
    """Where a sequence of executions stands.

    Attributes:
        workflow: The name of the workflow.
        execution: The last whole execution; 0: none yet.
        state: The version of each state relation that it left, by slot.
        invocations: How often each module was invoked, by its name.
    """

    workflow: str
    execution: int = 0
    state: Mapping[str, BoundaryRelation] = field(default_factory=dict)
    invocations: Mapping[str, int] = field(default_factory=dict)


class StateFolder:
    """A sequence's folder, locked while it is open."""

    def __init__(self, root: Path, workflow: str) -> None:
        self.root = root
        self._workflow = workflow

    @contextlib.contextmanager
    def opened(self) -> Iterator[SequencePointer]:
        """Lock the folder and read its pointer.

        Raises:
            UsageError: Another run goes on in it (``usage.state-locked``), it is another workflow's
                (``usage.state``), or it cannot be written.
            IntegrityError: The pointer cannot be read.
        """
        with self.locked():
            pointer = self.current()
            self._sweep(pointer.execution)
            yield pointer

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder.

        Raises:
            UsageError: Another run goes on in it (``usage.state-locked``), or it cannot be written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        except OSError as error:
            raise UsageError(
                f"the state cannot be kept there: {error.strerror}", code="usage.state", location=str(self.root)
            ) from error
        try:
            _lock(lock, self.root)
            yield
        finally:
            os.close(lock)

    def current(self) -> SequencePointer:
        """The pointer; that of a sequence without executions if there is none.

        Raises:
            UsageError: It is another workflow's (``usage.state``).
            IntegrityError: It cannot be read.
        """
        file = self.root / _CURRENT
        if not file.exists():
            return SequencePointer(self._workflow)
        try:
            pointer = _pointer_from(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IntegrityError(
                "the pointer to the last execution cannot be read", code="store.corrupt-state", location=str(file)
            ) from error
        if pointer.workflow != self._workflow:
            raise UsageError(
                f"this state is of workflow {pointer.workflow}, not of {self._workflow}",
                code="usage.state",
                location=str(self.root),
                hint="--state DIR, another folder",
            )
        return pointer

    def advance(self, pointer: SequencePointer) -> None:
        """Make an execution the last whole one."""
        body = {
            "format": FORMAT,
            "workflow": pointer.workflow,
            "execution": pointer.execution,
            "invocations": dict(pointer.invocations),
            "state": {slot: _relation_value(each) for slot, each in pointer.state.items()},
        }
        write_atomically(self.root / _CURRENT, json.dumps(body, sort_keys=True, separators=(",", ":")))

    def place(self, execution: int, mark: str) -> Path:
        """The folder of an execution's relations; each try of one execution has a ``mark`` of its own."""
        return self.root / f"e{execution:06d}.{mark}"

    def _sweep(self, execution: int) -> None:
        """Remove what a killed run left of executions that never became whole."""
        for folder in self.root.iterdir():
            found = _EXECUTION.fullmatch(folder.name)
            if found and int(found[1]) > execution and folder.is_dir() and not folder.is_symlink():
                shutil.rmtree(folder, ignore_errors=True)
        for file in self.root.glob(f".{_CURRENT}.*.tmp"):
            file.unlink(missing_ok=True)


def _lock(handle: int, root: Path) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on this system: two runs at once are the user's to avoid
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(
            "another run of the workflow goes on in this state",
            code="usage.state-locked",
            location=str(root),
            hint="wait for its end, or name another folder: --state DIR",
        ) from error


def write_atomically(file: Path, text: str) -> None:
    """Replace a file as a whole, on disk before its name changes."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    temporary.replace(file)


def _relation_value(each: BoundaryRelation) -> dict[str, Any]:
    return {"path": each.path, "format": each.format, "schema": each.schema, "files": [list(f) for f in each.files]}


def _pointer_from(body: Any) -> SequencePointer:
    if body["format"] != FORMAT:
        raise ValueError(f"format {body['format']}")
    state = {
        slot: BoundaryRelation(
            each["path"], each["format"], each["schema"], tuple(RelationFile(*file) for file in each["files"])
        )
        for slot, each in body["state"].items()
    }
    return SequencePointer(body["workflow"], int(body["execution"]), state, dict(body["invocations"]))
