"""Models of a dbt project that some of its files name with ``ref``, and those that these name in turn."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from govtool.capture.dbt import files
from govtool.capture.dbt.project import model_folders
from govtool.capture.sql.files import Script

MAX_MODELS = 5_000
"""Models that are read for the sake of others."""
_REF = re.compile(r"""\bref\s*\(\s*(?:["'][\w.$-]+["']\s*,\s*)?["']([\w.$-]+)["']""")


def referred_models(
    read: Sequence[Script], paths: Iterable[str | Path], root: Path, *, follow_links: bool = False
) -> Iterator[Script]:
    """Yield the models that scripts need and that are not among them.

    Args:
        read: The scripts that were read.
        paths: The files and folders that they are from; ``-`` is none.
        root: The folder that the files of scripts are relative to; files elsewhere begin with ``..``.
        follow_links: Follow links also where they lead out of a project.
    """
    waiting = [name for script in read for name in _REF.findall(script.text)]
    if not waiting:
        return
    folders = model_folders(paths, follow_links=follow_links)
    places = {file.stem: file for folder in folders for file in reversed(files.files(folder, ".sql"))}
    seen = {Path(script.file).stem for script in read}
    while waiting and len(seen) < MAX_MODELS:
        name = waiting.pop()
        file = places.get(name)
        if name in seen or file is None:
            continue
        seen.add(name)
        content = files.text(file)
        waiting += _REF.findall(content)
        yield Script(Path(os.path.relpath(file, root)).as_posix(), content)
