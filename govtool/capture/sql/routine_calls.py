"""Calls of routines that no script of a batch defines: statements of unknown reach.

A call of a routine that is read says nothing by itself; what the routine writes is read where it is defined. Procedures
of the database systems that only administer (``sp_addextendedproperty``, ``DBMS_STATS``) move no data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from govtool.capture.sql.lexer import word_set
from govtool.capture.sql.scripts.dynamic import CALLS_ROUTINE
from govtool.capture.sql.states import ScriptState, StatementState
from govtool.model import Diagnostic

_PART: Final = r"""(?:[\w$#]+|"[^"]+"|`[^`]+`|\[[^\]]+\])"""
_NAME: Final = rf"({_PART}(?:\s*\.\.?\s*{_PART})*)"
_DEFINED: Final = re.compile(
    r"\b(?:PROCEDURE|PROC|FUNCTION|TASK|ALERT|PACKAGE|EVENT|PREPARE|MODULE)\s+(?:BODY\s+)?"
    rf"(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}",
    re.IGNORECASE,
)
_CALLED: Final = re.compile(
    rf"\s*(?:(?:CALL|EXECUTE|EXEC)\s+)?(?:@\w+\s*=\s*)?(?:(?:TASK|ALERT)\s+)?{_NAME}", re.IGNORECASE
)
_NAME_PART: Final = re.compile(rf"{_PART}")
_MAX_HEAD: Final = 400
"""Characters of a CREATE in which the name of the routine is looked for."""

_ADMINISTERS: Final = re.compile(
    r"""(?:sp_(?:help|add|drop|grant|revoke|bind|unbind|trace|cdc_|fulltext|xml_|set|get|release|change|update|db|
    recompile|refresh|configure|who|lock|depends|spaceused|tableoption|indexoption|serveroption|procoption|estimate)|
    system\$|bq\.|mysql\.rds_|refresh_continuous_aggregate|add_\w+_policy|remove_\w+_policy|raise_application_error|
    (?:sys\.)?dbms_(?:output|stats|lock|session|application_info|random|lob|utility|metadata|mview|snapshot|assert|
    crypto|alert|profiler|space|rls|refresh|transaction|flashback|monitor|trace|obfuscation)|apex_util|
    (?:\w+\.)?system\.(?!snapshot|migrate|add_files|register_table))""",
    re.IGNORECASE | re.VERBOSE,
)
"""Procedures that systems bring with them and that hand on no data of tables."""
_JOBS: Final = word_set("SP_ADD_JOBSTEP SP_UPDATE_JOBSTEP SP_ADD_JOB SP_ADDLINKEDSRVLOGIN")
"""Procedures that look like these, and hand a statement to somebody who runs it."""


def defined_routines(scripts: Iterable[ScriptState]) -> frozenset[str]:
    """Return the last parts of the names of all routines, tasks and prepared statements that scripts define."""
    found: set[str] = set()
    for script in scripts:
        for statement in script.statements:
            parsed = statement.parsed
            if parsed.routine:
                found.add(_last_part(parsed.routine))
            if parsed.head.startswith(("create", "alter", "prepare", "declare")):
                match = _DEFINED.search(parsed.text, 0, _MAX_HEAD)
                if match is not None:
                    found.add(_last_part(match[1]))
    return frozenset(found)


def is_call(statement: StatementState) -> bool:
    """Return whether a statement only calls a routine."""
    parsed = statement.parsed
    return parsed.status == "ignored" and any(note.message == CALLS_ROUTINE for note in parsed.diagnostics)


def unknown_routine(statement: StatementState, defined: frozenset[str]) -> str | None:
    """Return the name of the routine that a call runs, if nobody here knows what it does; else None.

    Args:
        statement: A call (``is_call``).
        defined: Of ``defined_routines``.
    """
    match = _CALLED.match(statement.parsed.text)
    if match is None:
        return statement.parsed.text[:60]
    parts = _NAME_PART.findall(match[1])
    name = ".".join([part.strip('"`[]') for part in parts])
    last = _last_part(match[1])
    if last in defined or (_administers(name) and last.upper() not in _JOBS):
        return None
    return name


def mark_unknown_calls(scripts: Iterable[ScriptState], known: frozenset[str]) -> None:
    """Make calls of routines that nobody defines statements that are not understood.

    Args:
        scripts: A batch.
        known: Routines that other batches define, as ``defined_routines`` names them.
    """
    every = list(scripts)
    calls = [statement for script in every for statement in script.statements if is_call(statement)]
    if not calls:
        return
    defined = known | defined_routines(every)
    for statement in calls:
        name = unknown_routine(statement, defined)
        if name is None:
            continue
        kept = [note for note in statement.diagnostics if note.message != CALLS_ROUTINE]
        message = f"calls {name[:120]}, which no script here defines: what it reads and writes is not known"
        statement.diagnostics = [*kept, Diagnostic("opaque", "warning", message)]
        statement.parsed = statement.parsed._replace(status="opaque")


def _last_part(name: str) -> str:
    return _NAME_PART.findall(name)[-1].strip('"`[]').lower() if _NAME_PART.search(name) else name.lower()


def _administers(name: str) -> bool:
    """Return whether a routine is one of those that systems bring, with or without the schema that it is in."""
    plain = re.sub(r"^(?:(?:master|msdb|tempdb)\.)?(?:sys|dbo)?\.", "", name, flags=re.IGNORECASE)
    return _ADMINISTERS.match(plain) is not None
