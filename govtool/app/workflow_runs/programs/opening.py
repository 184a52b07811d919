"""Programs of SQL by their place: a script, or a dbt project."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.app.workflow_runs.programs.sql import SqlProgram
    from govtool.store import Store


def is_sql_program(text: str) -> bool:
    """Return whether a text names a script of SQL or a dbt project."""
    from govtool.app.workflow_runs.programs.dbt import is_project

    place = Path(text)
    return place.suffix.lower() == ".sql" or (place.is_dir() and is_project(place))


def open_program(
    place: Path, store: Store, state: Path | None = None, dialect: str = "", inputs: Path | None = None
) -> tuple[SqlProgram, Path]:
    """A program, and the folder of its runs.

    Args:
        place: A ``.sql`` file, a dbt project or its ``target`` folder.
        store: Where its runs are.
        state: The folder of its runs; None: ``NAME.state`` in the working folder.
        dialect: What it is written in; empty: Spark SQL, or what the dbt project's adapter speaks.
        inputs: The folder of its inputs: models of which it has a file are not run.

    Raises:
        UsageError: A file is missing, or a statement is not run here.
    """
    from govtool.app.ingest.sql_options import check_dialect
    from govtool.app.why.data_folder import relation_files
    from govtool.app.workflow_runs.programs.dbt import dbt_program, incremental_state, project_folder
    from govtool.app.workflow_runs.programs.run import TABLES, settle_state
    from govtool.app.workflow_runs.programs.sql import SqlProgram, read_script

    dialect = check_dialect(dialect) if dialect else ""
    if place.suffix.lower() != ".sql":
        folder = state or Path(f"{project_folder(place).name}.state")
        settle_state(store, folder)
        given = () if inputs is None else relation_files(inputs)
        return dbt_program(place, incremental_state(folder / TABLES), dialect, given), folder
    try:
        content = place.read_bytes()
        text = content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise UsageError(f"cannot be read: {reason}", code="usage.workflow-file", location=str(place)) from error
    dialect = dialect or "spark"
    digest = hashlib.sha256(content).hexdigest()
    program = SqlProgram(place.name, read_script(text, dialect, str(place)), dialect, digest=digest)
    return program, state or Path(f"{place.stem}.state")
