"""Failures of a run: what is written about them, and the exit code."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from typer.exceptions import TyperException

from govtool.cli.shared.command import current
from govtool.cli.shared.ui import Ui, silence
from govtool.errors import EXIT_OK, StoreError, UsageError
from govtool.render.layout.table import Span

_STOP_SIGNALS = ("SIGTERM", "SIGHUP")
_received: list[int] = []
"""Signals that ended this run."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread where the system asks the process to end.

    What somebody else handles or ignores already (``nohup``) stays as it is. In another thread than the main one, which
    cannot set handlers, nothing changes.
    """
    previous: dict[int, Any] = {}
    _received.clear()
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
    _received.append(number)
    logging.disable(logging.CRITICAL)  # other packages log a traceback of what the interrupt breaks, as py4j does
    raise KeyboardInterrupt


def is_interrupted() -> bool:
    """Return whether a signal ended this run: a failure after it is one of what it broke.

    A process below may have had the same signal, as Spark's has where a whole group is told to end; what we then read
    from it is an error of its own.
    """
    return bool(_received)


def report(lines: Iterator[list[Span]], code: int) -> int:
    """Write an error to stderr; with ``--debug`` the traceback goes before it."""
    ui = current[-1] if current else Ui()
    try:
        sys.stdout.flush()
    except OSError:
        silence(sys.stdout)
    try:
        if ui.debug:
            import traceback

            from govtool.redaction import clean_text

            sys.stderr.write(clean_text(traceback.format_exc()))
        for line in lines:
            ui.remark(line)
        sys.stderr.flush()
    except OSError:  # a full disk or a closed pipe behind stderr: the exit code says it
        silence(sys.stderr)
    return code


def as_usage_error(error: TyperException) -> UsageError:
    """Convert typer's argument error into a usage error."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "govtool"
    near = tuple(sorted(getattr(error, "possibilities", None) or ()))
    text = error.message if near else error.format_message()
    hint = f"{path} --help"
    option = str(getattr(error, "option_name", "")).removeprefix("--")
    if path.endswith(" erase plan") and option == "where":
        near, hint = (), "rows are named by a key: --subject TABLE.COLUMN=VALUE; by a condition: govtool trace forward"
    if path.endswith(" ingest all") and _is_of_a_source(option):
        near, hint = (
            (),
            f"set {option} below its [[sources]] in govtool.toml, or name the kind: govtool ingest sql PATH",
        )
    return UsageError((text[:1].lower() + text[1:]).rstrip("."), code="usage.arguments", nearest=near, hint=hint)


def _is_of_a_source(option: str) -> bool:
    from govtool.config_sources import KINDS

    return any(option.replace("-", "_") in options for options in KINDS.values())


def as_os_error(error: OSError) -> StoreError:
    """Convert an error of the operating system, of a file or of the output."""
    reason = (error.strerror or str(error)).lower()
    if isinstance(error.filename, str):
        return StoreError(reason, code="store.io", location=error.filename)
    return StoreError(f"the output cannot be written: {reason}", code="output.io")


def reader_left() -> int:
    """Stop without a word where stdout was closed, and keep the interpreter from flushing into it."""
    silence(sys.stdout)
    return EXIT_OK


def open_streams() -> None:
    """A stream that was closed before we started (``>&-``) is one that holds nothing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def note_interrupt() -> None:
    """Write that the run was interrupted."""
    with contextlib.suppress(OSError):
        sys.stderr.write("interrupted\n")
