"""Requests to ingest query logs, and reports of progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from govtool.app.ingest.sql_options import SqlRequest


def log_formats() -> tuple[str, ...]:
    """Return the values of ``--from``."""
    from govtool.capture.logs.read import NAMES

    return NAMES


@dataclass(frozen=True, slots=True)
class LogRequest:
    """The logs to read, and how to read them."""

    sql: SqlRequest
    """Paths, dialect, schema, defaults. The dialect is that of statements whose log does not say."""
    format: str = "auto"
    map: Mapping[str, str] = field(default_factory=dict)
    keep_literals: bool = False
    max_errors: int | None = None
    """Rejects beyond which the ingest is given up; None: never."""
    engine: str = "local"
    """``local`` or ``spark``. The graph is the same."""
    workers: int | None = None
    """Processes of the local engine; None: one a core, and none but this one for a small log."""
    master: str | None = None
    """Spark's master URL; None: that of the session or of Spark's own configuration."""
    replace: bool = False
    """True: a source that was read elsewhere may be replaced."""


@dataclass(frozen=True, slots=True)
class Status:
    """The progress of an ingest."""

    stage: str
    """``reading``, ``resolving``, ``writing``."""
    done: int
    total: int
    """Of the whole ingest, in no unit; what stays comes from the two and the clock."""
    records: int = 0
    rate: float = 0.0
    """Of the stage: records or distinct statements a second; 0 where it is not known yet."""
    distinct: int = 0
    failed: int = 0
    left: float | None = None
    """Seconds that the rest takes; None until the stage says so."""


Report = Callable[[Status], None]
