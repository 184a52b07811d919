"""The code of a job: its arguments, and digests of the modules that are its own."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from types import ModuleType
from typing import Any

from govtool.spark.live.job.digest_key import Digests

MAX_MODULES = 1000
MAX_BYTES = 16 << 20
"""Of one file."""
_GOVTOOL = os.path.abspath(__file__).rsplit(os.sep, 4)[0]


def arguments(digests: Digests) -> list[str] | None:
    """A digest for each argument of the script, in order; None without a key."""
    if not digests.id:
        return None
    return [digests.of(f"{position} {word}") for position, word in enumerate(sys.argv[1:], 1)]


def own_modules() -> dict[str, str]:
    """Digests of the imported modules that belong to no distribution: helpers beside the script, ``--py-files``.

    A module in an archive counts as the archive, under its file name.
    """
    library = _library()
    main = os.path.abspath(str(getattr(sys.modules.get("__main__"), "__file__", "") or ""))
    found: dict[str, str] = {}
    for name, module in sorted(dict(sys.modules).items()):
        path = _source(module)
        if not path or path == main or path.startswith(library) or _is_ours(name):
            continue
        if len(found) == MAX_MODULES:
            break
        key, digest = _digested(name, path)
        if digest:
            found[key] = digest
    return found


def _source(module: Any) -> str:
    if not isinstance(module, ModuleType):
        return ""
    path = getattr(module, "__file__", None)
    return os.path.abspath(path) if isinstance(path, str) and path.endswith((".py", ".pyw")) else ""


def _library() -> tuple[str, ...]:
    """Folders of Python, of installed distributions, of Spark and of what records: none of them the job's own."""
    paths = [
        value for key, value in sysconfig.get_paths().items() if key in ("stdlib", "platstdlib", "purelib", "platlib")
    ]
    pyspark = getattr(sys.modules.get("pyspark"), "__file__", None)
    paths += [os.path.dirname(pyspark)] if pyspark else []
    paths += [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    paths.append(_GOVTOOL)
    return tuple(os.path.join(os.path.abspath(path), "") for path in paths)


def _is_ours(name: str) -> bool:
    return name in ("sitecustomize", "usercustomize") or name.partition(".")[0] in ("govtool", "py4j", "pyspark")


def _digested(name: str, path: str) -> tuple[str, str]:
    key = f"module:{name}"
    while not os.path.isfile(path):
        parent = os.path.dirname(path)
        if parent == path:
            return key, ""
        path = parent
        key = f"py-file:{os.path.basename(path)}"
    try:
        with open(path, "rb") as file:
            return key, hashlib.sha256(file.read(MAX_BYTES)).hexdigest()
    except OSError:
        return key, ""
