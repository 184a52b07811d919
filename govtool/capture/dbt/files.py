"""Files of dbt projects: found, and read as text or YAML. What cannot be read is as if it were not there."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from govtool.given_files import leads_out

MAX_BYTES = 4 << 20
"""Of a file with macros or of settings; larger ones are none."""
MAX_FILES = 20_000
"""Files that are read in one place of a project."""
MAX_FOLDERS = 20_000
"""Folders that are looked at in one place of a project."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a project, and where links in it may lead."""

    path: Path
    top: Path | None = None
    """The folder, without links, that links do not leave; None: they lead anywhere."""


def leaves(path: Path, top: Path | None) -> bool:
    """Return whether a path leads out of a folder by a link."""
    if top is None:
        return False
    try:
        return leads_out(path, top)
    except (OSError, ValueError):
        return True


def may_name(path: Path, top: Path | None) -> bool:
    """Return whether settings may name a file or folder: in the folder that links do not leave, or in its checkout.

    Who wrote the settings wrote the rest of the checkout, too, and nothing outside of it.
    """
    if top is None or not leaves(path, top):
        return True
    checkout = _checkout(top)
    return checkout is not None and not leaves(path, checkout)


def _checkout(folder: Path) -> Path | None:
    """The checkout of Git that holds a folder; a home, or what is above it, is no project's."""
    found = next((each for each in (folder, *folder.parents) if os.path.exists(each / ".git")), None)  # noqa: PTH110
    try:
        is_home = found is not None and Path(os.path.realpath(Path.home())).is_relative_to(found)
    except RuntimeError:
        is_home = False
    return None if is_home else found


def files(folder: Folder, *suffixes: str) -> list[Path]:
    """The files below a folder whose names end so, in lower case; in order, without links that leave its top."""
    found: list[Path] = []
    for number, (place, folders, names) in enumerate(os.walk(folder.path)):
        if number == 0 and leaves(folder.path, folder.top):
            return []
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        listed = [Path(place, name) for name in sorted(names) if name.lower().endswith(suffixes)]
        found += [file for file in listed if not (file.is_symlink() and leaves(file, folder.top))]
        if number > MAX_FOLDERS or len(found) > MAX_FILES:  # such as ``macro-paths: [/]``
            return found[:MAX_FILES]
    return found


def text(file: Path) -> str:
    """The text of a file; empty if it is not text, or too large."""
    try:
        if not file.is_file() or file.stat().st_size > MAX_BYTES:
            return ""
        return file.read_text(encoding="utf-8-sig", errors="replace")
    except (OSError, ValueError):
        return ""


def yaml_mapping(source: str) -> Mapping[str, Any]:
    """The mapping in a YAML text; empty if it is not a mapping."""
    data = _yaml(source)
    return data if isinstance(data, dict) else {}


def yaml_problem(source: str) -> str:
    """Why a text is no YAML, with the line and column that its parser names; empty if it is some."""
    problem = _yaml(source)
    if not isinstance(problem, Exception):
        return ""
    mark = getattr(problem, "problem_mark", None)
    why = getattr(problem, "problem", None) or str(problem) or type(problem).__name__
    return f"{why}, line {mark.line + 1}, column {mark.column + 1}" if mark is not None else why


@functools.lru_cache(maxsize=512)
def _yaml(source: str) -> Any:
    """What a YAML text holds, or the exception that its parser raises; nobody changes it."""
    if not source:
        return None
    import yaml

    try:
        return yaml.load(source, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return error


def size(value: object, limit: int) -> int:
    """The values in a value; counting stops above the limit, as aliases of YAML can make it huge, or endless."""
    count = 0
    waiting = [value]
    while waiting and count <= limit:
        item = waiting.pop()
        count += 1
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return count


def texts(value: object, default: Iterable[str]) -> list[str]:
    """A text, or those of a list; the default where it is neither."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [item for item in value if isinstance(item, str)]
    return list(default)
