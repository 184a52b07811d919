"""The spool: one file a process, a JSON object a line, on disk before the next is written.

A full disk, a folder that is gone, a file that cannot be made: lines are lost and counted, and nobody hears of it here.
A line that was cut off, by a kill or a full disk, is the reader's to leave out.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

SPOOL = "GOVTOOL_SPARK_SPOOL"
"""The environment variable that names the folder of the spool."""
RECORDS = "GOVTOOL_SPARK_RECORDS"
"""The environment variable that asks for records: the folder of their spool."""
EAGER = "GOVTOOL_SPARK_EAGER"
"""The environment variable that asks for positions of records, too."""
POSITIONS = "positions"
"""The folder, within that of records, of positions of rows: small lines, beside plans that are not."""
FORMAT = 1
MAX_LINE = 8 << 20
"""Bytes of one line; what is longer becomes a line that says so."""
MAX_JOINED = 64 << 20
"""Bytes of an exact plan."""
WAIT = "GOVTOOL_SPARK_WAIT"
"""Seconds that the end of a job, or of its context, may wait for its last records."""
DEFAULT_WAIT = 15.0


def wait() -> float:
    """Seconds that a job may wait for its last records."""
    return float(os.environ.get(WAIT) or DEFAULT_WAIT)


class Spool:
    """A file of lines in a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.lost = 0
        self._file: int | None = None
        self._pid = -1
        self._torn = False
        self._lock = threading.Lock()

    def write(self, line: dict[str, Any]) -> bool:
        """Write a line; False if it is lost."""
        try:
            text = json.dumps(line, separators=(",", ":"), default=str)
            if len(text) > MAX_LINE:
                kept = {key: line.get(key) for key in ("e", "n", "name", "ok", "query", "started", "ended")}
                text = json.dumps({**kept, "break": "plan-too-large", "size": len(text)}, default=str)
            self._locked(text)
        except Exception:
            self.lost += 1
            return False
        return True

    def write_joined(self, line: dict[str, Any], more: str) -> bool:
        """Write a line with the members of a JSON object that is text already; False if it is lost."""
        if len(more) > MAX_JOINED:
            return self.write({**line, "break": "plan-too-large", "size": len(more)})
        try:
            self._locked(json.dumps(line, separators=(",", ":"), default=str)[:-1] + "," + more[1:])
        except Exception:
            self.lost += 1
            return False
        return True

    def _locked(self, text: str) -> None:
        with self._lock:
            self._append(text.encode("utf-8", "backslashreplace"))

    def _append(self, data: bytes) -> None:
        if self._pid != os.getpid():  # the first line of this process; after a fork the file is the parent's
            name = f"{os.getpid()}-{time.time_ns()}.jsonl"
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
            self._file = os.open(os.path.join(self.folder, name), flags, 0o600)
            self._pid = os.getpid()
            self._torn = False
        # A torn line is ended first, so that it costs only itself.
        data = (b"\n" if self._torn else b"") + data + b"\n"
        assert self._file is not None
        self._torn = True
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)
        self._torn = False
