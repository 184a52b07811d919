"""Workflows in files of Python."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from govtool.errors import AmbiguousNameError, UnknownNameError, UsageError
from govtool.redaction import failure_of

if TYPE_CHECKING:
    from govtool.workflow.modules.workflow import Workflow

TAKEN = "a workflow is a file of Python (.py), a script of SQL (.sql), or the folder of a dbt project"
"""The kinds of workflows."""


def _no_project(folder: Path) -> UsageError:
    """The error of a folder that cannot be run: a dbt project that is not compiled, or none."""
    if (folder / "dbt_project.yml").is_file():
        message, hint = "this dbt project is not compiled: it has no target/manifest.json", "dbt compile"
    else:
        message, hint = "this folder is no dbt project", TAKEN
    return UsageError(message, code="usage.workflow-file", location=str(folder), hint=hint)


def load_workflow(target: str) -> Workflow:
    """The workflow of ``FILE.py`` or ``FILE.py:NAME``; the file is run as a module.

    Raises:
        UsageError: The file is not there or fails (``usage.workflow-file``).
        UnknownNameError: It has no such workflow.
        AmbiguousNameError: It has several, and no name is given.
    """
    from govtool.workflow.modules.workflow import Workflow

    place, name = _split(target)
    file = Path(place)
    if file.is_dir():
        raise _no_project(file)
    if not file.is_file():
        raise UsageError("there is no such file", code="usage.workflow-file", location=place)
    found = {key: each for key, each in vars(_imported(file)).items() if isinstance(each, Workflow)}
    if name:
        return _named(found, name, place)
    distinct = {id(each): each for each in found.values()}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    if not found:
        raise UnknownNameError(
            "no workflow is defined there",
            code="usage.unknown-workflow",
            location=place,
            hint="flow = govtool.Workflow(name, nodes, edges)",
        )
    raise AmbiguousNameError(
        f"{len(distinct)} workflows are defined there",
        code="usage.ambiguous-workflow",
        location=place,
        nearest=tuple(found),
        hint=f"govtool workflow run {place}:{next(iter(found))}",
    )


def absolute_target(target: str) -> str:
    """``FILE.py`` or ``FILE.py:NAME`` with the whole path of the file."""
    place, name = _split(target)
    return f"{Path(place).absolute()}{name and f':{name}'}"


def _split(target: str) -> tuple[str, str]:
    place, colon, name = target.rpartition(":")
    if colon and place.endswith(".py") and name.isidentifier():
        return place, name
    return target, ""


def _named(found: dict[str, Workflow], name: str, place: str) -> Workflow:
    own = {each.name: each for each in found.values()}
    for known in (found, own):
        if name in known:
            return known[name]
    raise UnknownNameError(
        f"no workflow is called {name}",
        code="usage.unknown-workflow",
        location=place,
        nearest=tuple(difflib.get_close_matches(name, [*found, *own], 3, 0.4)),
    )


def _imported(file: Path) -> ModuleType:
    """Run the file. Its functions travel to Spark's workers by value: nobody can import the file there."""
    from govtool.records.execute.functions import WORKFLOW_MODULE

    name = f"{WORKFLOW_MODULE}{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file.absolute())
    if spec is None or spec.loader is None:
        raise UsageError("this file is no workflow", code="usage.workflow-file", location=str(file), hint=TAKEN)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(file.absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = next(
            (
                f.lineno
                for f in reversed(traceback.extract_tb(error.__traceback__))
                if f.filename == str(file.absolute())
            ),
            None,
        )
        raise UsageError(
            f"the file fails: {failure_of(error)}",
            code="usage.workflow-file",
            location=f"{file}:{line}" if line else str(file),
        ) from error
    _by_value(module)
    return module


def _by_value(module: ModuleType) -> None:
    try:
        from pyspark import cloudpickle
    except ImportError:  # whoever starts the session reports it
        return
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
