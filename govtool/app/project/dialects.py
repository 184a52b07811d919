"""The SQL dialect of a folder, where a file of the project states it.

Of a dbt project the profile states it (``profiles.yml``, in the project's folder, a folder below it or one above it);
of any folder the settings of sqlfluff do (``.sqlfluff``, ``[tool.sqlfluff.core]`` of ``pyproject.toml``). Nothing
outside the root is read, and nothing is guessed from the SQL.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from govtool.capture.dbt.artifacts import ADAPTERS
from govtool.capture.dbt.files import text, yaml_mapping
from govtool.config import parse_toml
from govtool.given_files import leads_out

_SQLFLUFF: Mapping[str, str] = {"sparksql": "spark", "greenplum": "postgres", "mariadb": "mysql", "tsql": "tsql"}
"""Dialects of sqlfluff that have other names here; adapters of dbt are called alike."""


class StatedDialect(NamedTuple):
    """A dialect and the file that states it."""

    dialect: str
    file: str
    """Relative to the root."""


def stated_dialect(root: Path, path: str) -> StatedDialect | None:
    """Return the dialect that files of a project state for one of its folders.

    Args:
        root: The project's root; files that lie elsewhere, be it by a symbolic link, are not read.
        path: A folder or file below the root, relative to it.
    """
    place = root / path
    folders = [folder for folder in (place, *place.parents) if folder.is_relative_to(root)]
    for file, dialect in _candidates(place, folders, root):
        if dialect:
            return StatedDialect(dialect, file.relative_to(root).as_posix())
    return None


def _candidates(place: Path, folders: list[Path], root: Path) -> Iterator[tuple[Path, str]]:
    profile = yaml_mapping(_text(place / "dbt_project.yml", root)).get("profile")
    if isinstance(profile, str):
        for folder in (place, *_below(place), *folders[1:]):
            file = folder / "profiles.yml"
            yield file, _adapter(yaml_mapping(_text(file, root)).get(profile))
    for folder in folders:
        yield folder / ".sqlfluff", _sqlfluff(_text(folder / ".sqlfluff", root))
        yield folder / "pyproject.toml", _pyproject(_text(folder / "pyproject.toml", root))


def _below(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError:
        return []


def _text(file: Path, root: Path) -> str:
    return "" if leads_out(file, Path(os.path.realpath(root))) else text(file)


def _adapter(profile: object) -> str:
    """The dialect of a profile's target; without one that is known, that of all its outputs, if they agree."""
    outputs = profile.get("outputs") if isinstance(profile, dict) else None
    if not isinstance(profile, dict) or not isinstance(outputs, dict):
        return ""
    target = profile.get("target", "default")
    chosen = [outputs[target]] if isinstance(target, str) and target in outputs else list(outputs.values())
    types = [each.get("type") if isinstance(each, dict) else None for each in chosen]
    known = {kind if isinstance(kind, str) else "" for kind in types}
    return ADAPTERS.get(known.pop(), "") if len(known) == 1 else ""


def _sqlfluff(source: str) -> str:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(source)
    except configparser.Error:
        return ""
    return _named(parser.get("sqlfluff", "dialect", fallback=""))


def _pyproject(source: str) -> str:
    try:
        data: Any = parse_toml(source)
    except ValueError:
        return ""
    for key in ("tool", "sqlfluff", "core", "dialect"):
        data = data.get(key) if isinstance(data, dict) else None
    return _named(data) if isinstance(data, str) else ""


def _named(dialect: str) -> str:
    name = dialect.strip().lower()
    return _SQLFLUFF.get(name) or ADAPTERS.get(name, "")
