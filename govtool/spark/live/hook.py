"""Watches for sessions: patches pyspark when the job imports it, and not before.

Nothing here may keep a job from running: what fails is skipped.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from types import ModuleType
from typing import Any

from govtool.spark.live import process
from govtool.spark.live.process import recorder, trouble

_RDDS = ("pyspark.core.rdd", "pyspark.rdd")
"""The module of RDDs, since Spark 4 and before."""
_FRAMES = ("pyspark.sql.classic.dataframe", "pyspark.sql.dataframe")
"""The module of DataFrames that have RDDs, since Spark 4 and before."""
_patched: dict[str, bool] = {}


def install(place: str) -> None:
    """Record the Spark sessions of this process, those of the past included, into a folder."""
    process.folder = place
    patches = {
        "pyspark.sql.session": _patch_classic,
        "pyspark.sql.connect.session": _patch_connect,
        **dict.fromkeys(_RDDS, _patch_rdds),
        **dict.fromkeys(_FRAMES, _patch_frames),
    }
    waiting: dict[str, Callable[[ModuleType, str], None]] = {}
    for name, patch in patches.items():
        if name in sys.modules:
            _apply(name, patch, sys.modules[name], place)
        else:
            waiting[name] = patch
    sys.meta_path.insert(0, _Watch(waiting, place))


class _Watch(importlib.abc.MetaPathFinder):
    """Finds nothing itself: wraps the loaders of a few modules so that they are patched once loaded."""

    def __init__(self, patches: dict[str, Callable[[ModuleType, str], None]], folder: str) -> None:
        self.patches = patches
        self.folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        patch = self.patches.pop(fullname, None)
        if patch is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, fullname, patch, self.folder)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: Any, name: str, patch: Callable[[ModuleType, str], None], folder: str) -> None:
        self.loader = loader
        self.name = name
        self.patch = patch
        self.folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self.loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        spec = getattr(module, "__spec__", None)
        if spec is not None:
            spec.loader = self.loader
        module.__loader__ = self.loader
        _apply(self.name, self.patch, module, self.folder)


def _apply(name: str, patch: Callable[[ModuleType, str], None], module: ModuleType, folder: str) -> None:
    if _patched.get(name):
        return
    _patched[name] = True
    try:
        patch(module, folder)
    except Exception as error:
        trouble(folder, f"patch {name}: {type(error).__name__}")


def _patch_classic(module: ModuleType, folder: str) -> None:
    _after_init(module.SparkSession, folder, "attach", _attach)


def _attach(session: Any) -> None:
    if process.folder:
        recorder(process.folder).attach(session)


def _patch_rdds(module: ModuleType, folder: str) -> None:
    from govtool.spark.live.rdd_actions import patch
    from govtool.spark.live.streams import rows_were_collected

    if module.RDD.__module__ == module.__name__:  # pyspark.rdd of Spark 4 has the class of pyspark.core.rdd
        patch(module, rows_were_collected)


def _patch_frames(module: ModuleType, folder: str) -> None:
    from pyspark.version import __version__

    from govtool.spark.live.rdd_actions import patch_frames

    is_abstract = module.__name__ == _FRAMES[1] and int(__version__.partition(".")[0]) >= 4
    if not is_abstract:
        patch_frames(module.DataFrame)


def _patch_connect(module: ModuleType, folder: str) -> None:
    from govtool.spark.live.connect import watch

    _after_init(module.SparkSession, folder, "connect", lambda session: watch(session, recorder(folder)))


def _after_init(session_class: Any, folder: str, what: str, then: Callable[[Any], None]) -> None:
    """Have something done with each new session; where that fails, it is noted and the session is as it would be."""
    original = session_class.__init__

    @wraps(original)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        try:
            then(self)
        except Exception as error:
            trouble(folder, f"{what}: {type(error).__name__}")

    session_class.__init__ = made
