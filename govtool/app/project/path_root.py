"""``[paths] root``: below it, names of local files are relative."""

from __future__ import annotations

from pathlib import Path

from govtool.config import load_config
from govtool.names import relative_id


def within_root(dataset: str) -> str:
    """The name of a dataset, relative to the root of the project where ``[paths] root`` sets one and it lies below."""
    root = paths_root()
    return relative_id(dataset, root) if root else dataset


def paths_root() -> str:
    """``[paths] root`` of the project; empty where names of local files are absolute."""
    root = load_config(Path.cwd()).paths_root
    return "" if root is None else root.as_posix()
