"""Places that a replayed script names: which of the recorded inputs a path means."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote

_GLOB = frozenset("*?[{")


class ReplayPlaces:
    """The inputs of a run by their paths.

    Args:
        inputs: Each with ``name`` (its paths, joined by commas) and ``files``, the URIs that were read.
    """

    def __init__(self, inputs: Sequence[dict[str, Any]]) -> None:
        self.inputs = [one for one in inputs if not one["table"]]

    def inputs_at(self, places: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
        """The inputs that paths mean together, and the first path that means none.

        A path means an input whose files all lie at the paths. Versions of one input are not told apart by a path:
        then the path means none.
        """
        paths = [unwritten_path(place) for place in places]
        found = [one for one in self.inputs if self._covered(one, paths)]
        for place, path in zip(places, paths, strict=True):
            if not any(_meets(path, one) for one in found):
                return [], place
        files = [file for one in found for file in one["files"]]
        return (found, "") if len(set(files)) == len(files) else ([], places[0])

    @staticmethod
    def _covered(one: dict[str, Any], paths: Sequence[str]) -> bool:
        files = [unwritten_path(file) for file in one["files"]]
        if not files:
            return any(path in _roots(one) for path in paths)
        return all(any(_holds(path, file) and _meets(path, one) for path in paths) for file in files)


def _roots(one: dict[str, Any]) -> list[str]:
    return [_root(name, one["files"]) for name in (one["name"], *one["name"].split(","))]


def _root(name: str, files: Sequence[str]) -> str:
    """The path of a name; of one that is relative to the project's root by the files that lie there."""
    if not name.startswith("file:") or name.startswith("file:/"):
        return unwritten_path(name)
    inner = "/" + name.removeprefix("file:")
    for path in map(unwritten_path, files):
        head, found, _ = f"{path}/".rpartition(f"{inner}/")
        if found:
            return head + inner
    return inner


def _meets(path: str, one: dict[str, Any]) -> bool:
    """Return whether a path is at or within an input's own paths, or is the folder of its files."""
    files = [unwritten_path(file) for file in one["files"]]
    if _GLOB & set(path):
        return any(_holds(path, file) for file in files)
    roots = _roots(one)
    if any(path == os.path.dirname(root) for root in roots if root in files):
        return True  # the run named the files, one by one or by a pattern
    return any(path == root or path.startswith(f"{root}/") for root in roots)


def _holds(path: str, file: str) -> bool:
    if not _GLOB & set(path):
        return file == path or file.startswith(f"{path}/")
    parts, own = path.split("/"), file.split("/")
    return len(own) >= len(parts) and all(map(_fits, own, parts))


def _fits(name: str, pattern: str) -> bool:
    if "{" not in pattern:
        return fnmatchcase(name, pattern)
    head, _, rest = pattern.partition("{")
    choices, _, tail = rest.partition("}")
    return any(_fits(name, f"{head}{choice}{tail}") for choice in choices.split(","))


def unwritten_path(place: str) -> str:
    """A path without scheme, where it is local, and without a slash at its end; ``s3a`` and ``s3n`` are ``s3``.

    >>> unwritten_path("file:///data/my%20orders/"), unwritten_path("file//data/orders"), unwritten_path("s3a://b/k")
    ('/data/my orders', '/data/orders', 's3://b/k')
    """
    if place.startswith(("file:", "file//")):
        return os.path.normpath("/" + unquote(place[5:]).lstrip("/"))
    scheme, separator, rest = place.partition("://")
    if separator:
        return f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest.rstrip('/')}"
    return os.path.abspath(place)


def table_name(name: str) -> str:
    """The name of a table without quotes and without the name of Spark's own catalog, in lower case."""
    return name.replace("`", "").removeprefix("spark_catalog.").lower()


def is_table(name: str, output: str) -> bool:
    """Return True if a name means a table: it is its name, or the end of it."""
    wanted, own = table_name(output), table_name(name)
    return wanted == own or wanted.endswith(f".{own}") or own.endswith(f".{wanted}")
