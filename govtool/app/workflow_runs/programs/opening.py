"""Programs of SQL by their place: a script, or a dbt project."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.app.workflow_runs.programs.run import SqlOutcome
    from govtool.app.workflow_runs.programs.sql import SqlProgram
    from govtool.model.workflow_run import WorkflowRun
    from govtool.store import Store


@dataclass(frozen=True, slots=True)
class SqlRunRequest:
    """A program of SQL to run.

    Attributes:
        place: A ``.sql`` file, a dbt project or its ``target`` folder.
        inputs: A folder of relations; None: the program has all that it reads.
        state: The folder of its runs; None: ``NAME.state`` in the working folder.
        dialect: What it is written in; empty: Spark SQL, or what the dbt project's adapter speaks.
    """

    place: Path
    inputs: Path | None = None
    state: Path | None = None
    dialect: str = ""


def is_sql_program(text: str) -> bool:
    """Return whether a text names a script of SQL or a dbt project."""
    from govtool.app.workflow_runs.programs.dbt import is_project

    place = Path(text)
    return place.suffix.lower() == ".sql" or (place.is_dir() and is_project(place))


def run_sql_program(request: SqlRunRequest, store: Store, branch: str | None = None) -> tuple[SqlOutcome, WorkflowRun]:
    """Run a program, commit it, and return it as a run.

    Raises:
        UsageError: A file is missing, or a statement is not run here.
        EngineError: A statement fails.
        StoreError: The commit could not be written.
    """
    from govtool.app.project.project import existing_branch
    from govtool.app.workflow_runs.programs.recorded import find_recorded_run
    from govtool.app.workflow_runs.programs.run import run_sql

    program, state = _opened(request)
    target = existing_branch(store, branch)
    try:
        outcome = run_sql(program, request.inputs, state, store, target)
    except UnknownNameError as error:
        if error.code == "usage.unknown-relation" and request.inputs is None and not error.hint:
            error.hint = "--inputs FOLDER, the folder of NAME.csv and NAME.parquet that it reads"
        raise
    head = store.head(target)
    assert head is not None
    return outcome, find_recorded_run(store, head, outcome.run).run


def _opened(request: SqlRunRequest) -> tuple[SqlProgram, Path]:
    from govtool.app.ingest.sql_options import check_dialect
    from govtool.app.workflow_runs.programs.dbt import dbt_program, incremental_state, project_folder
    from govtool.app.workflow_runs.programs.run import TABLES
    from govtool.app.workflow_runs.programs.sql import SqlProgram, read_script

    if request.inputs is not None and not request.inputs.is_dir():
        raise UsageError("there is no such folder of inputs", code="usage.inputs", location=str(request.inputs))
    place = request.place
    dialect = check_dialect(request.dialect) if request.dialect else ""
    if place.suffix.lower() != ".sql":
        state = request.state or Path(f"{project_folder(place).name}.state")
        return dbt_program(place, incremental_state(state / TABLES), dialect), state
    try:
        content = place.read_bytes()
        text = content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise UsageError(f"cannot be read: {reason}", code="usage.workflow-file", location=str(place)) from error
    state = request.state or Path(f"{place.stem}.state")
    dialect = dialect or "spark"
    digest = hashlib.sha256(content).hexdigest()
    return SqlProgram(place.name, read_script(text, dialect, str(place)), dialect, digest=digest), state
