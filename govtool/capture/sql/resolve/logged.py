"""Statements as a query log gives them to the extractor: with the names, the time and the users of their runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A statement of a log, for all its runs."""

    text: str
    """As the first of its runs was sent."""
    file: str
    line: int
    """The place of the first of its runs."""
    spans: bool = False
    """True if its lines are lines of the log, too."""
    catalog: str | None = None
    """Canonical; the catalog of names without one where it ran."""
    schema: str | None = None
    search_path: tuple[str, ...] = ()
    principal: str | None = None
    """The users who ran it, sorted and joined by commas."""
    first_seen: str | None = None
    last_seen: str | None = None
    count: int = 1
    relation: str | None = None
    """Canonical; what a bare SELECT makes (a model of dbt)."""


@dataclass(frozen=True, slots=True)
class LoggedScript:
    """Statements that were run one after the other in one session, and depend on that."""

    session: str
    statements: tuple[LoggedStatement, ...]
    dialect: str = ""
    """Empty: as in the options."""
