"""Locate the files of evidence and policies in the repository, for annotations and code scanning.

Evidence names files relative to what was ingested, policies relative to the working directory; GitHub shows an
annotation where a file of that path is in the repository. So the files are looked for: below the working directory,
then by the end of their path in the whole repository. A file that several folders have is taken from the folder that
has most of the others; where that does not decide, its path stays as the evidence has it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import normpath
from typing import TYPE_CHECKING

from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.policy.rules.finding import Finding

MOST = 200_000
"""Files that are looked at; in a larger repository --root says where the files are."""
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})


@dataclass(frozen=True, slots=True)
class Checkout:
    """A repository and what is known of places in it."""

    top: Path
    """Its folder: the nearest one above the working directory that git knows, else the working directory."""
    here: str = ""
    """The working directory, relative to it; empty if it is the same."""
    root: str = ""
    """The ingested folder, relative to it; empty: not given."""
    found: Mapping[str, str] = field(default_factory=dict)
    """Files of the evidence that were found, and their paths."""

    def evidence(self, file: str, place: str) -> str:
        """The path of a file of the evidence; ``place`` is what a message points to.

        Raises:
            UsageError: It leads out of the repository (``usage.outside-repository``).
        """
        joined = self.found.get(file) or normpath(f"{self.root}/{file}" if self.root else file).replace("\\", "/")
        if joined.startswith(("/", "../")) or joined == ".." or _has_root(joined):
            raise UsageError(
                f"{joined} lies outside the repository",
                code="usage.outside-repository",
                location=place,
                hint="--root FOLDER says where in the repository the ingested files are",
            )
        return joined

    def written(self, file: str) -> str | None:
        """The path of a policy's file; None if it is not in the repository."""
        if file.startswith("pack:"):
            return None
        joined = normpath(f"{self.here}/{file}" if self.here else file)
        return None if joined.startswith(("/", "../")) or joined == ".." else joined


def files_of(findings: Iterable[Finding]) -> set[str]:
    """The files that the evidence of findings names."""
    return {step.evidence.file for finding in findings for step in finding.steps}


def checkout(files: Iterable[str], root: str = "", *, at: Path | None = None) -> Checkout:
    """The repository that a folder is in, and where files of the evidence are in it.

    Args:
        files: As the evidence names them.
        root: The ingested folder, relative to the repository; if empty the files are looked for.
        at: The folder; default: the working directory.
    """
    here = (at or Path.cwd()).resolve()
    top = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    below = here.relative_to(top).as_posix() if here != top else ""
    if root:
        return Checkout(top, below, root)
    wanted = {file for file in files if _is_relative(file)}
    found = {file: f"{below}/{file}" if below else file for file in wanted if (here / file).is_file()}
    missing = wanted - found.keys()
    if missing:
        found |= _looked_for(top, missing)
    return Checkout(top, below, root, found)


def _is_relative(file: str) -> bool:
    parts = file.split("/")
    return bool(file) and not file.startswith("<") and parts[0] != "" and ".." not in parts and not _has_root(file)


def _has_root(path: str) -> bool:
    """Return whether a path begins with a drive or a scheme: ``C:/``, ``s3://``. Names may have colons, too."""
    return path.partition("/")[0].endswith(":")


def _looked_for(top: Path, files: set[str]) -> dict[str, str]:
    """The files whose folders are told by the end of their paths."""
    by_name: dict[str, list[str]] = {}
    for file in files:
        by_name.setdefault(file.rpartition("/")[2], []).append(file)
    folders: dict[str, set[str]] = {file: set() for file in files}
    for path in _files_below(top, by_name.keys()):
        for file in by_name[path.rpartition("/")[2]]:
            if path == file or path.endswith(f"/{file}"):
                folders[file].add(path.removesuffix(file))
    votes = Counter(folder for several in folders.values() for folder in several)
    found = {}
    for file, several in folders.items():
        best = sorted(several, key=lambda folder: -votes[folder])
        if best and (len(best) == 1 or votes[best[0]] > votes[best[1]]):
            found[file] = best[0] + file
    return found


def _files_below(top: Path, names: Iterable[str]) -> list[str]:
    """The paths of files of some names, relative to the folder; none if there are too many to look at."""
    wanted = frozenset(names)
    found: list[str] = []
    seen = 0
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
        seen += len(files) + len(folders)
        if seen > MOST:
            return []
        relative = Path(folder).relative_to(top)
        found += ((relative / name).as_posix() for name in files if name in wanted)
    return found
