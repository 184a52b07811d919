"""Python runs this at its start because ``govtool run`` put its folder first on PYTHONPATH: the job's sessions are
recorded, and the site's own sitecustomize runs as if this were not here.
"""

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _is_worker() -> bool:
    """Return whether this is a Python worker of Spark: it has no session."""
    if "PYTHON_WORKER_FACTORY_SECRET" in os.environ or "PYTHON_WORKER_FACTORY_PORT" in os.environ:
        return True
    return any(
        word in argument
        for argument in getattr(sys, "orig_argv", [])[1:4]
        for word in ("pyspark.daemon", "pyspark.worker")
    )


def _start() -> None:
    folder = os.environ.get("GOVTOOL_SPARK_SPOOL")
    if not folder or _is_worker() or sys.version_info < (3, 8):
        return
    import importlib.machinery
    import importlib.util

    package = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))

    class Own:
        """Finds this very govtool, whether or not the job's interpreter has one."""

        @staticmethod
        def find_spec(fullname: str, path: object = None, target: object = None) -> object:
            if fullname != "govtool":
                return None
            return importlib.util.spec_from_file_location(
                "govtool", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
            )

    sys.meta_path.insert(0, Own)  # type: ignore[arg-type]
    from govtool.spark.live.hook import install

    install(folder)


def _next() -> None:
    """Run the sitecustomize that this one hides."""
    import importlib.machinery
    import importlib.util

    rest = [folder for folder in sys.path if os.path.abspath(folder or os.curdir) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _start()
except Exception:
    pass
_next()
