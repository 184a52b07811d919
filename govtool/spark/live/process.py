"""The recorder of this process: one, made when first needed, for whatever part of the recording wants it."""

from __future__ import annotations

import atexit
from typing import Any

from govtool.spark.live.spool import Spool, wait

folder = ""
"""The folder of the spool, once the sessions of this process are recorded."""
_recorder: Any | None = None


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
            _recorder.finish(wait())
    except BaseException:
        pass


def trouble(folder: str, what: str) -> None:
    """Write down that something of ours did not work."""
    try:
        recorder(folder).note({"e": "trouble", "what": what})
    except Exception:
        return
