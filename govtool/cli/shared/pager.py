"""A pager for answers that are longer than the terminal.

``GOVTOOL_PAGER`` names it, else ``PAGER``, else ``less`` where there is one; empty or ``cat`` means none.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import IO

_LESS = {"LESS": "FRX"}
"""Options of less, where the user has none: quit at one screen, pass colours on, leave the text on the terminal."""


def pager_command(environ: Mapping[str, str] = os.environ) -> str | None:
    """The command line of the pager; None: there is to be none."""
    chosen = environ.get("GOVTOOL_PAGER", environ.get("PAGER"))
    if environ.get("TERM") == "dumb":
        return None
    if chosen is None:
        return "less" if shutil.which("less") else None
    return None if chosen.strip() in ("", "cat") else chosen


def is_long(number: int, stream: IO[str]) -> bool:
    """True if so many lines do not fit on the terminal of a stream; False if it is not a terminal or has no height."""
    try:
        height = os.get_terminal_size(stream.fileno()).lines if stream.isatty() else 0
        return 0 < height <= number
    except (OSError, ValueError):
        return False


def show_paged(text: str, command: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Show a text in a pager; False if the pager could not be started.

    A user who leaves the pager before the end has seen enough: that is no error.
    """
    try:
        pager = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env={**_LESS, **environ})
    except OSError:
        return False
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        pager.communicate(text.encode("utf-8", "backslashreplace"))
    return pager.wait() != 127  # the shell's way to say that there is no such command
