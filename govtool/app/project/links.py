"""Links out of a folder of data: what is behind them is read only where the user allows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from govtool.errors import UsageError
from govtool.given_files import leads_out


def require_inside(folder: Path, *, follow_links: bool = False) -> None:
    """Refuse a folder with links to files or folders outside of it, at any depth.

    Args:
        folder: The folder, which may itself be named by a link.
        follow_links: Allow them.

    Raises:
        UsageError: There is such a link (``usage.link``).
    """
    if follow_links or not folder.is_dir():
        return
    top = folder.resolve()
    for link in _links(top):
        if link.exists() and leads_out(link, top):
            raise UsageError(
                "a link out of the folder",
                code="usage.link",
                location=str(folder / link.relative_to(top)),
                hint="--follow-links reads what is behind it",
            )


def _links(folder: Path) -> Iterator[Path]:
    """The symbolic links in a folder; none of them is followed."""
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
