"""Output of commands: stdout for the answer, stderr for progress, warnings and hints."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, Protocol

from govtool.cli.shared.pager import is_long, pager_command, show_paged
from govtool.errors import UsageError, output_error
from govtool.render.formats.streams import TextFragment
from govtool.render.layout.table import Span, Table, lines, plain
from govtool.render.layout.text import Prose
from govtool.render.progress import rated_label, seconds_left, time_left

if TYPE_CHECKING:
    from rich.console import Console

ColorMode = Literal["auto", "always", "never"]


class Progress(Protocol):
    """Draws how far the work is."""

    def __call__(self, done: int, total: int, label: str | None = None, left: float | None = None) -> None:
        """So much of so much; a label takes the place of the one before it.

        Seconds left take the place of a reckoning; infinite: nobody knows.
        """


_SHOW_AFTER = 0.4
"""Seconds of work before a progress bar appears."""
_REDRAW_EVERY = 0.1


@dataclass(slots=True)
class Ui:
    """Streams and switches of one run; made by the command wrapper, passed to every command."""

    quiet: bool = False
    verbose: int = 0
    progress: bool = True
    color: ColorMode = "auto"
    debug: bool = False
    timings: bool = False
    out: IO[str] = field(default_factory=lambda: sys.stdout)
    err: IO[str] = field(default_factory=lambda: sys.stderr)
    wrote: bool = False
    """True if a part of the answer is on stdout."""
    _clock: list[tuple[str, float]] = field(default_factory=lambda: [("start", time.perf_counter())])

    # answers -----------------------------------------------------------------------------------------------------

    def show(self, rendered: Table | Prose | Iterable[str], file: Path | None = None, *, private: bool = False) -> None:
        """Show what a renderer made, on stdout or in a file; a private file is readable by its owner only."""
        if private and file is not None:
            made = plain(rendered) if isinstance(rendered, Table) else rendered
            _write_file(file, made.lines if isinstance(made, Prose) else made, 0o600)
        elif isinstance(rendered, Table):
            self.table(rendered, file)
        elif isinstance(rendered, Prose):
            self._prose(rendered, file)
        else:
            self.write(rendered, file)

    def _prose(self, prose: Prose, file: Path | None) -> None:
        """Show lines for people: folded on a terminal, in a pager past a screen; whole anywhere else."""
        if file is not None or not (self.out.isatty() or self._styled(self.out)):
            self.write(prose.lines, file)
            return
        limit = _terminal_width(self.out) if self.out.isatty() else None
        self._laid_out([[Span(text, style)] for text, style in prose.styled(limit)])

    def write(self, text_lines: Iterable[str], file: Path | None = None) -> None:
        """Write lines to stdout, or whole to a file by way of a temporary neighbour."""
        if file is not None:
            _write_file(file, text_lines)
            return
        self.wrote = True
        write = self.out.write
        for line in text_lines:
            write(line)
            if not isinstance(line, TextFragment):
                write("\n")

    def write_bytes(self, data: bytes, file: Path | None = None) -> None:
        """Write what is no text to stdout, or whole to a file by way of a temporary neighbour.

        Raises:
            UsageError: stdout is a terminal.
        """
        if file is not None:
            _write_file(file, [data])
            return
        if self.out.isatty():
            raise UsageError("this format cannot be shown on a terminal", code="usage.output", hint="-o FILE")
        self.wrote = True
        self.out.flush()
        stream = getattr(self.out, "buffer", None)
        if stream is None:
            raise UsageError("this format is not text", code="usage.output", hint="-o FILE")
        stream.write(data)

    def table(self, table: Table, file: Path | None = None) -> None:
        """Show a table: folded and coloured on a terminal, in a pager past a screen; plain and wide anywhere else."""
        if file is not None or not (self.out.isatty() or self._styled(self.out)):
            self.write(plain(table), file)
            return
        self._laid_out(list(lines(table, _terminal_width(self.out) if self.out.isatty() else None)))

    def _laid_out(self, made: Sequence[Iterable[Span]]) -> None:
        """Show lines on stdout: in the pager past a screen, in colour where that is wanted."""
        self.wrote = True
        command = pager_command() if is_long(len(made), self.out) else None
        if command is not None:
            self.out.flush()
            if show_paged(self._painted(made), command):
                return
        if not self._styled(self.out):
            self.write("".join(span.text for span in spans) for spans in made)
            return
        console = self._console(self.out)
        for spans in made:
            _paint(console, spans)

    def _painted(self, made: Iterable[Iterable[Span]]) -> str:
        """Lines as text, with colours where these are wanted."""
        if not self._styled(self.out):
            return "".join(f"{''.join(span.text for span in spans)}\n" for spans in made)
        from rich.console import Console

        buffer = io.StringIO()
        console = Console(file=buffer, force_terminal=True, highlight=False, emoji=False, markup=False)
        for spans in made:
            _paint(console, spans)
        return buffer.getvalue()

    # remarks -----------------------------------------------------------------------------------------------------

    def remark(self, spans: Iterable[Span]) -> None:
        """Write one line to stderr, in colour where that is wanted."""
        line = list(spans)
        try:
            if self._styled(self.err):
                _paint(self._console(self.err), line, wrap=True)
            else:
                self.err.write("".join(span.text for span in line) + "\n")
        except BrokenPipeError:
            silence(self.err)  # nobody reads the remarks: that says nothing about the answer

    def remark_width(self) -> int | None:
        """The cells of a line on stderr; None off a terminal."""
        return _terminal_width(self.err) if self.err.isatty() else None

    def note(self, text: str) -> None:
        """A remark that ``--quiet`` silences."""
        if not self.quiet:
            self.remark([Span(text)])

    def hint(self, text: str) -> None:
        """Print a hint on what to do next; silenced by ``--quiet``."""
        if not self.quiet:
            self.remark([Span("hint: ", "cyan"), Span(text)])

    def mark(self, name: str) -> None:
        """Note that a stage has ended, for ``--timings``."""
        self._clock.append((name, time.perf_counter()))

    def show_timings(self) -> None:
        """Write what each stage took, where ``--timings`` asks for it."""
        if not self.timings:
            return
        self.mark("output")
        for (_, before), (name, after) in zip(self._clock, self._clock[1:], strict=False):
            self.remark([Span(f"{(after - before) * 1000:9.1f} ms  {name}", "dim")])

    @contextmanager
    def progressing(self, label: str, unit: str = "") -> Iterator[Progress]:
        """A callback ``(done, total)`` that draws a bar on stderr once the work has taken a moment.

        Draws nothing off a terminal, with ``--no-progress`` or with ``--quiet``.

        Args:
            label: What is done.
            unit: What is counted, in the plural: then the bar shows how many a second.
        """
        if not self.progress or self.quiet or not self.err.isatty():
            yield _no_progress
            return
        bar = _Bar(label, self._console(self.err), unit)
        try:
            yield bar.update
        finally:
            bar.close()

    # how ---------------------------------------------------------------------------------------------------------

    def _styled(self, stream: IO[str]) -> bool:
        if self.color != "auto":
            return self.color == "always"
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"

    def _console(self, stream: IO[str]) -> Console:
        from rich.console import Console

        styled = self._styled(stream)
        return Console(
            file=stream,
            force_terminal=True if styled else None,
            no_color=not styled,
            color_system="auto" if stream.isatty() else "standard",
            highlight=False,
            emoji=False,
            markup=False,
            legacy_windows=None if stream.isatty() else False,
        )


def silence(stream: IO[str]) -> None:
    """Send what is still in a stream's buffer, and all to come, nowhere: the interpreter's last flush must not fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _no_progress(done: int, total: int, label: str | None = None, left: float | None = None) -> None:
    """Draw nothing."""


class _Bar:
    """A rich progress bar that is made only when the work turns out to be long."""

    def __init__(self, label: str, console: Console, unit: str) -> None:
        self._label = label
        self._unit = unit
        self._console = console
        self._started = self._drawn = time.monotonic()
        self._close: Callable[[], None] | None = None
        self._draw: Progress = _no_progress

    def update(self, done: int, total: int, label: str | None = None, left: float | None = None) -> None:
        self._label = label or self._label
        now = time.monotonic()
        if self._close is None:
            if now - self._started < _SHOW_AFTER:
                return
            self._open(total)
        elif now - self._drawn < _REDRAW_EVERY and done < total:
            return
        self._drawn = now
        shown = self._label
        if self._unit:
            shown = rated_label(shown, self._unit, done, total, now - self._started)
        self._draw(done, total, shown, left)

    def _open(self, total: int) -> None:
        from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
        from rich.text import Text

        started = self._started

        class TimeLeft(ProgressColumn):
            """Reckons anew whenever the bar is drawn: while nothing moves, it grows."""

            max_refresh = 0.5

            def render(self, task: Task) -> Text:
                known: float | None = task.fields["left"]
                if known is not None:
                    return Text(seconds_left(known))
                return Text(time_left(int(task.completed), int(task.total or 0), time.monotonic() - started))

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(20),
            TaskProgressColumn(),
            TimeLeft(),
            console=self._console,
            transient=True,
        )
        task = bar.add_task(self._label, total=total or None, left=None)
        bar.start()

        def draw(done: int, total: int, label: str | None = None, left: float | None = None) -> None:
            bar.update(task, completed=done, total=total or None, description=label, left=left)

        self._draw = draw
        self._close = bar.stop

    def close(self) -> None:
        if self._close is not None:
            self._close()


def _paint(console: Console, spans: Iterable[Span], *, wrap: bool = False) -> None:
    from rich.text import Text

    console.print(Text.assemble(*((span.text, span.style) for span in spans)), soft_wrap=not wrap)


def _terminal_width(stream: IO[str]) -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _write_file(file: Path, parts: Iterable[str | bytes], mode: int = 0o666) -> None:
    """Write lines of text, fragments of text and bytes as they are."""
    target = temporary = file
    try:
        target, temporary = _places(file)
        how = os.O_TRUNC
        if temporary != target:
            temporary.unlink(missing_ok=True)
            how = os.O_EXCL  # in a folder of others, none of them may have made it before
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | how, mode)
        with os.fdopen(opened, "wb") as handle:
            handle.writelines(_encoded(part) for part in parts)
        if temporary != target:
            temporary.replace(target)
    except OSError as error:
        if temporary != target:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        raise output_error(error, str(file)) from error


def _places(file: Path) -> tuple[Path, Path]:
    """What a file's name leads to, and its neighbour that is written first; both the same for what is no plain file.

    Raises:
        OSError: A folder on the way cannot be looked into, or the name is none.
    """
    target = file.resolve()
    may_be_open = file.is_relative_to("/proc") or (file.is_relative_to("/dev") and not file.is_relative_to("/dev/shm"))
    if file.exists() and (may_be_open or not file.is_file()):
        return file, file  # a device, a pipe, an open file: written to, not replaced
    return target, target.with_name(f".{target.name}.{os.getpid()}.tmp")


def _encoded(part: str | bytes) -> bytes:
    if isinstance(part, bytes):
        return part
    return (part if isinstance(part, TextFragment) else f"{part}\n").encode()
