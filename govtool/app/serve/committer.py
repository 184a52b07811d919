"""From the spool into the store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.ingest.openlineage import commit_events, read_events
from govtool.app.serve.event_spool import EventSpool
from govtool.errors import GovtoolError, StoreError
from govtool.store import Store
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult

WAIT = 5.0
"""Seconds after which what was received is committed."""
BATCH = 5000
"""Events that are committed without waiting for more."""

Report = Callable[["IngestResult | GovtoolError"], None]


@dataclass(slots=True)
class CommitTarget:
    """The store and source of a server's events."""

    store: Store
    source: str
    dialect: str = ""
    branch: str = DEFAULT_BRANCH
    author: str | None = None


class Committer(threading.Thread):
    """Commits what the spool holds, every ``wait`` seconds or when it holds many events; and at the end, all."""

    def __init__(self, spool: EventSpool, target: CommitTarget, report: Report, wait: float = WAIT) -> None:
        super().__init__(name="committer", daemon=True)
        self.spool = spool
        self.target = target
        self.report = report
        self.wait = wait
        self.failed: Exception | None = None
        """The reason why the last batch could not be committed; it stays in the spool."""
        self._wake = threading.Event()
        self._stopping = threading.Event()

    def run(self) -> None:
        """Commit until ``stop``."""
        pending = self.spool.left
        while not self._stopping.is_set():
            self._wake.wait(self.wait)
            self._wake.clear()
            if pending or self.spool.waiting:
                pending = not self.commit()
        self.commit()

    def notice(self) -> None:
        """Say that events have arrived."""
        if self.spool.waiting >= BATCH:
            self._wake.set()

    def stop(self) -> None:
        """Commit what is left, and end."""
        self._stopping.set()
        self._wake.set()
        self.join()

    def commit(self) -> bool:
        """Commit all files of the spool; whether that went well."""
        files = self.spool.take()
        return not files or self._commit(files)

    def _commit(self, files: list[Path]) -> bool:
        target = self.target
        try:
            read = read_events([str(file) for file in files], target.dialect)
            # Opened anew: a store that was moved away meanwhile must not be begun again in its old place.
            result = commit_events(
                Store.open(target.store.uri),
                read,
                target.source,
                append=True,
                author=target.author,
                branch=target.branch,
            )
        except GovtoolError as error:
            self.failed = error
            self.report(error)
            return False
        except Exception as error:
            if len(files) > 1:
                done = [self._commit([file]) for file in files]
                return all(done)
            # One event that we fail over must not keep all others from the store. It stays on disk, set aside.
            failed_file = files[0].with_suffix(".failed")
            files[0].replace(failed_file)
            message = f"events could not be read: {type(error).__name__}: {error}"
            self.report(StoreError(message, code="store.events", location=str(failed_file)))
            return True
        self.failed = None
        for file in files:
            with suppress(OSError):
                file.unlink()
        self.report(result)
        return True
