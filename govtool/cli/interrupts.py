"""Ends that are asked for: SIGTERM and SIGHUP are taken as Ctrl-C is, so that nothing half done is left behind."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

_STOP_SIGNALS = ("SIGTERM", "SIGHUP")


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread where the system asks the process to end.

    What somebody else handles or ignores already (``nohup``) stays as it is. In another thread than the main one, which
    cannot set handlers, nothing changes.
    """
    previous: dict[int, Any] = {}
    try:
        for number in (getattr(signal, name, None) for name in _STOP_SIGNALS):
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                with contextlib.suppress(ValueError):
                    previous[number] = signal.signal(number, _interrupt)
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # who asks twice does not wait for what is being put away
    raise KeyboardInterrupt
