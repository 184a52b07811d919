"""Finds the folders of dbt projects: around what is read, and below it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from govtool.given_files import absolute

PROJECT_FILE = "dbt_project.yml"
_MAX_ABOVE = 12
"""Folders above what is read in which a project is looked for."""
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "target", "logs", "dbt_packages", "dbt_modules"})


def project_folders(paths: Iterable[str | Path]) -> dict[Path, Path]:
    """The folders of projects that hold what is read, and of those below it; with the folder that links do not leave:
    what is read, where it holds the project. All folders below what is read are listed.
    """
    folders: dict[Path, Path] = {}
    for path in paths:
        for folder in folders_around(path):
            folders.setdefault(folder, folder.resolve())
        if str(path) != "-" and os.path.isdir(path):  # noqa: PTH112 - a folder without rights is no error here
            top = absolute(path).resolve()
            folders.update({folder: top for folder in _below(absolute(path)) if folder.resolve().is_relative_to(top)})
    return folders


def sorted_folders(paths: Iterable[str | Path], folders: Mapping[Path, Path] | None) -> list[tuple[Path, Path]]:
    """The ``project_folders`` of paths in order; ``folders`` are these, where they are known."""
    return sorted((project_folders(paths) if folders is None else folders).items())


def folders_around(path: str | Path) -> Iterator[Path]:
    """The folder of the project that a file or folder belongs to; none of standard input."""
    if str(path) == "-":
        return
    real = absolute(path)
    above = _above(real if os.path.isdir(real) else real.parent)  # noqa: PTH112
    if above is not None:
        yield above


def _above(folder: Path) -> Path | None:
    for candidate in (folder, *folder.parents[:_MAX_ABOVE]):
        if is_project(candidate):
            return candidate
    return None


def is_project(folder: Path) -> bool:
    """Return whether a folder holds a project; False if that cannot be seen, as reading it reports the reason."""
    return os.path.isfile(folder / PROJECT_FILE)  # noqa: PTH113 - ``Path.is_file`` raises without rights


def _below(folder: Path) -> Iterator[Path]:
    """Yield the folders of projects in a folder, in no order; links to folders are not followed."""
    waiting = [str(folder)]
    while waiting:  # of thousands of folders, ``os.walk`` takes twice as long as the system does
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    name = entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if name not in _SKIPPED and not name.startswith("."):
                            waiting.append(entry.path)
                    elif name == PROJECT_FILE and not os.path.isdir(entry.path):  # noqa: PTH112 - as above
                        yield Path(place)
        except OSError:  # one without rights, or that is gone
            continue
