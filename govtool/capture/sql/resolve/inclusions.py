"""Scripts that others include (psql, SQL*Plus' ``@``, sqlcmd's ``:r``) and that nobody reads.

What a script that is not there does is not known: the command that includes it is a statement of unknown reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.scripts.source_positions import printable
from govtool.model import Diagnostic


def mark_missing_scripts(scripts: Iterable[ScriptState]) -> None:
    """Make commands that include what is not among the scripts of a batch statements that are not understood."""
    every = list(scripts)
    commands = [statement for script in every for statement in script.statements if statement.parsed.included]
    if not commands:
        return
    files: dict[str, list[str]] = {}
    for script in every:
        file = f"/{script.file.lower().lstrip('/')}"
        files.setdefault(file.rpartition("/")[2], []).append(file)
    for statement in commands:
        path = statement.parsed.included
        if _is_among(path, files):
            continue
        note = statement.diagnostics[0]
        message = f"includes {printable(path)}, which is not among the scripts that are read: what it does is not known"
        statement.diagnostics = [Diagnostic("opaque", "warning", message, note.file, note.line, note.column)]
        statement.parsed = statement.parsed._replace(status="opaque")


def includes(statement: StatementState) -> bool:
    """Return whether a statement is a command that includes a script, whether that is read or not."""
    return statement.parsed.head == "include"


def _is_among(path: str, files: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a path, of whatever folder, may be that of one of the files, which are by their last part."""
    parts = [part for part in PurePosixPath(path.strip("'\"").replace("\\", "/")).parts if part not in (".", "..", "/")]
    if not parts:
        return False
    wanted = "/" + "/".join(parts).lower()
    names = [wanted] if "." in parts[-1] else [wanted, f"{wanted}.sql"]
    return any(
        file.endswith(name) or name.endswith(file) for name in names for file in files.get(name.rpartition("/")[2], ())
    )
