"""Watches for sessions: patches pyspark when the job imports it, and not before.

Nothing here may keep a job from running: what fails is skipped.
"""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from types import ModuleType
from typing import Any

from govtool.spark.live.spool import Spool

SPOOL = "GOVTOOL_SPARK_SPOOL"
"""The environment variable that names the folder of the spool."""
RECORDS = "GOVTOOL_SPARK_RECORDS"
"""The environment variable that asks for records: the folder of their spool."""
EAGER = "GOVTOOL_SPARK_EAGER"
"""The environment variable that asks for positions of records, too."""
_RDDS = ("pyspark.core.rdd", "pyspark.rdd")
"""The module of RDDs, since Spark 4 and before."""
WAIT = "GOVTOOL_SPARK_WAIT"
"""Seconds that the end of a job may wait for its last records."""
DEFAULT_WAIT = 15.0

folder = ""
"""The folder of the spool, once the sessions of this process are recorded."""
_recorder: Any | None = None
_patched: dict[str, bool] = {}


def install(place: str) -> None:
    """Record the Spark sessions of this process, those of the past included, into a folder."""
    global folder
    folder = place
    patches = {"pyspark.sql.session": _patch_classic, "pyspark.sql.connect.session": _patch_connect}
    if RECORDS in os.environ or (_recorder is not None and _recorder.replay is not None):
        patches.update(dict.fromkeys(_RDDS, _patch_rdds))
    waiting: dict[str, Callable[[ModuleType, str], None]] = {}
    for name, patch in patches.items():
        if name in sys.modules:
            _apply(name, patch, sys.modules[name], place)
        else:
            waiting[name] = patch
    sys.meta_path.insert(0, _Watch(waiting, place))


def recorder(folder: str) -> Any:
    """The recorder of this process, made when first needed."""
    global _recorder
    if _recorder is None:
        from govtool.spark.live.listener import Recorder

        _recorder = Recorder(Spool(folder))
        atexit.register(_at_exit)
    return _recorder


def _at_exit() -> None:
    try:
        if _recorder is not None:
            _recorder.finish(float(os.environ.get(WAIT) or DEFAULT_WAIT))
    except BaseException:
        pass


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


def trouble(folder: str, what: str) -> None:
    """Write down that something of ours did not work."""
    try:
        recorder(folder).note({"e": "trouble", "what": what})
    except Exception:
        return


def _patch_classic(module: ModuleType, folder: str) -> None:
    _after_init(module.SparkSession, folder, "attach", _attach)


def _attach(session: Any) -> None:
    if folder:
        recorder(folder).attach(session)


def _patch_rdds(module: ModuleType, folder: str) -> None:
    from govtool.spark.live.rdd_actions import patch

    if module.RDD.__module__ == module.__name__:  # pyspark.rdd of Spark 4 has the class of pyspark.core.rdd
        patch(module)


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
