"""Valid names of branches, tags, sources and tables."""

from __future__ import annotations

import re

from govtool.errors import UsageError

DEFAULT_BRANCH = "main"
"""The branch that every store has."""
FORGOTTEN = "govtool:forgotten"
"""The source of tombstones: what was removed from the store on purpose. No ingest may have this name."""
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_TABLE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OTHER_REF = re.compile(r"[0-9]{1,12}|[0-9]{4}-[0-9]{2}-[0-9]{2}|(?=[a-f]*[0-9])[0-9a-f]{4,64}|HEAD")
"""What names a commit by itself: its number, a date, its id."""
_LONGEST = 100
_LONGEST_SOURCE = 512


def check_branch(name: str) -> str:
    """Return ``name`` if a branch may be called that.

    Raises:
        UsageError: ``usage.branch``.
    """
    return _check_ref(name, "branch")


def check_tag(name: str) -> str:
    """Return ``name`` if a tag may be called that.

    Raises:
        UsageError: ``usage.tag``.
    """
    return _check_ref(name, "tag")


def _check_ref(name: str, what: str) -> str:
    if not _REF.fullmatch(name) or len(name) > _LONGEST or name == "HEAD" or name.endswith(".lock"):
        raise UsageError(
            f"{name!r} cannot be the name of a {what}",
            code=f"usage.{what}",
            hint=f"use up to {_LONGEST} letters, digits, dots, dashes and underscores, with / between parts",
        )
    return name


def check_new_name(name: str, what: str) -> str:
    """Return ``name`` if a new branch or tag may be called that: it is no number, date or id, which name commits too.

    Raises:
        UsageError: ``usage.branch``, ``usage.tag``.
    """
    if _OTHER_REF.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a {what}: it would name another commit, too",
            code=f"usage.{what}",
            hint="put a word before it; numbers, dates and ids of commits name these",
        )
    return _check_ref(name, what)


def check_source(name: str) -> str:
    """Return ``name`` if a source may be called that: any text of 1 to 512 characters without control characters.

    Raises:
        UsageError: ``usage.source``.
    """
    if not name or len(name) > _LONGEST_SOURCE or any(ord(character) < 32 for character in name):
        raise UsageError(
            f"{name[:60]!r} cannot be the name of a source",
            code="usage.source",
            hint=f"use 1 to {_LONGEST_SOURCE} characters without control characters: --source NAME",
        )
    return name


def check_table(name: str) -> str:
    """Return ``name`` if a table may be called that: it becomes part of the keys of its fragments.

    Raises:
        UsageError: ``usage.table``.
    """
    if not _TABLE.fullmatch(name):
        raise UsageError(f"{name[:60]!r} cannot be the name of a table", code="usage.table")
    return name
