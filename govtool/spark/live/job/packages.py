"""Distributions of imported modules, without reading the metadata of those that nothing was imported from."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import machinery, metadata

_SUFFIXES = tuple(machinery.all_suffixes())
"""What the names of modules end with."""


def imported_packages() -> dict[str, str]:
    """Versions of the distributions of which the process has imported a module."""
    wanted = _imported()
    owners = _owners(wanted)
    found: dict[str, str] = {}
    for name in wanted:
        for owner in owners.get(name, [name]):
            try:
                found[owner.lower()] = metadata.version(owner)
            except Exception:  # no distribution: a module of the script's own folder
                continue
    return dict(sorted(found.items()))


def _imported() -> set[str]:
    """The outermost names of imported modules, but for those of Python."""
    builtin: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset())
    tops = {name.partition(".")[0] for name in list(sys.modules)}
    return {name for name in tops if name not in builtin and not name.startswith("_")}


def _owners(wanted: set[str]) -> dict[str, list[str]]:
    """The distributions that modules belong to, by the modules' outermost names."""
    found: dict[str, list[str]] = {}
    for distribution in metadata.distributions():
        own = wanted.intersection(_declared(distribution) or _installed(distribution))
        if own:
            title = str(distribution.metadata["Name"])
            for name in own:
                found.setdefault(name, []).append(title)
    return found


def _declared(distribution: metadata.Distribution) -> list[str]:
    return (distribution.read_text("top_level.txt") or "").split()


def _installed(distribution: metadata.Distribution) -> set[str]:
    """The outermost names of what a distribution installed."""
    return {name for name in map(_outermost, _paths(distribution)) if name}


def _paths(distribution: metadata.Distribution) -> Iterator[str]:
    """Paths of the files of a distribution: those of a wheel's record, which is a table, are not parsed one by one."""
    record = distribution.read_text("RECORD")
    if record and '"' not in record:
        yield from (line.partition(",")[0] for line in record.splitlines())
    else:
        yield from (file.as_posix() for file in distribution.files or ())


def _outermost(path: str) -> str | None:
    folder, separator, _ = path.partition("/")
    if not separator:
        return inspect.getmodulename(path)
    return folder if path.endswith(_SUFFIXES) else None
