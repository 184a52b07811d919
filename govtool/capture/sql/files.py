"""Reading SQL scripts from files, folders and standard input. What cannot be read is a diagnostic, never an
exception.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from govtool.errors import UsageError
from govtool.given_files import leads_out, open_given
from govtool.model.diagnostic import Diagnostic

SUFFIXES = (
    ".sql",
    ".ddl",
    ".dml",
    ".hql",
    ".sqlx",
    ".psql",
    ".pgsql",
    ".bq",
    ".tsql",
    ".pls",
    ".plsql",
    ".pkb",
    ".pks",
    ".prc",
    ".vw",
)
"""File name endings that are read from folders, also with a template's ending behind them (``a.sql.j2``)."""

TEMPLATE_SUFFIXES = (".j2", ".jinja", ".jinja2", ".tmpl", ".tpl")

MAX_BYTES = 64 * 1024 * 1024
"""Larger files are not read: they are dumps of data, not scripts."""

STDIN = "<stdin>"

_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_SKIPPED = frozenset({"node_modules", "__pycache__", "dbt_packages", "venv"})
_BUILT = "target"
"""The folder of dbt's compiled files: skipped beside a ``dbt_project.yml``."""


@dataclass(frozen=True, slots=True)
class Script:
    """A SQL script to be read."""

    file: str
    """URI path relative to the ingest root, with forward slashes; ``<stdin>`` for standard input."""
    text: str
    session: str | None = None
    """The session it ran in, for temp tables and USE; None: the file is its own session."""
    note: Diagnostic | None = None
    """An assumption of reading it, such as its encoding."""
    text_digest: str = field(default="", repr=False, compare=False)
    """A digest of its text; empty where it was not read from a file."""

    @property
    def digest(self) -> str:
        """A digest of its text, of the same value wherever the text comes from."""
        return self.text_digest or digest_of(self.text.encode("utf-8", "surrogatepass"))


def read_scripts(
    paths: Sequence[str | Path],
    *,
    root: str | Path | None = None,
    stdin: IO[bytes] | IO[str] | None = None,
    follow_links: bool = False,
) -> Iterator[Script | Diagnostic]:
    """Read scripts in a stable order.

    Args:
        paths: Files, folders (read recursively, sorted, by ``SUFFIXES``), or ``-`` for standard input.
        root: What file names are relative to; default: the folder given, or the folder of the file given.
        stdin: Standard input, for ``-``.
        follow_links: Follow symbolic links in folders to where they lead, also out of the folder.

    Yields:
        A script, or why a file could not be read.

    Raises:
        UsageError: A path does not exist, or a folder holds no SQL.
    """
    for path in paths:
        if str(path) == "-":
            yield from _stdin(stdin)
            continue
        yield from _path(Path(path), Path(root) if root is not None else None, follow_links)


def _found(folder: Path, follow_links: bool) -> tuple[list[str], set[str]]:
    """The SQL files below a folder, sorted, and what of it is a link; hidden folders and packages are left out.

    A symbolic link that leads out of the folder is listed itself, not what is behind it, unless links are followed.
    A link to a file that is found anyway, or that leads round, is left out.
    """
    found: list[str] = []
    links: set[str] = set()
    _walk(str(folder), found, links, set(), 0, None if follow_links else folder.resolve())
    return _each_once(found, links), links


def digest_of(data: bytes) -> str:
    """A digest of a text in UTF-8."""
    return hashlib.sha256(data).hexdigest()


def is_sql(name: str) -> bool:
    """Return whether a file is SQL by its name."""
    lower = name.lower()
    for suffix in TEMPLATE_SUFFIXES:
        if lower.endswith(suffix):
            lower = lower[: -len(suffix)]
            break
    return lower.endswith(SUFFIXES)


def decode(data: bytes) -> tuple[str, str | None]:
    """The text of a file, and the encoding if it had to be guessed.

    Raises:
        ValueError: It is not text.
    """
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            try:
                return data.decode(encoding), None
            except UnicodeDecodeError as error:
                raise ValueError(f"not valid {encoding}") from error
    if b"\0" in data[:65536]:
        for encoding, zeros in (("utf-16-le", data[1:2000:2]), ("utf-16-be", data[0:2000:2])):
            if zeros and zeros.count(0) > len(zeros) * 0.8:
                try:
                    return data.decode(encoding), encoding
                except UnicodeDecodeError:
                    continue
        raise ValueError("a binary file")
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        pass
    control = sum(1 for byte in data[:8192] if byte < 32 and byte not in b"\t\n\r\f\v\x1a\x1b")
    if control > len(data[:8192]) // 50:
        raise ValueError("a binary file")
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


def _stdin(stdin: IO[bytes] | IO[str] | None) -> Iterator[Script | Diagnostic]:
    if stdin is None:
        raise UsageError("standard input is not available here", code="usage.stdin")
    try:
        data: bytes | str = stdin.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        yield _unreadable(STDIN, str(error))
        return
    if len(data) > MAX_BYTES:
        yield _unreadable(STDIN, f"more than {MAX_BYTES // 2**20} MiB")
        return
    if isinstance(data, str):
        yield Script(STDIN, data)
    else:
        yield _script(STDIN, data)


def _path(path: Path, root: Path | None, follow_links: bool) -> Iterator[Script | Diagnostic]:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(
            f"{path} does not exist", code="usage.no-such-path", hint="give files, folders, or - for standard input"
        ) from error
    except (OSError, ValueError) as error:
        yield _unreadable(_relative(path, root or path.parent), _reason(error))
        return
    if not stat.S_ISDIR(mode):
        yield _read(path, _relative(path, root or path.parent))
        return
    files, links = _found(path, follow_links)
    if not files:
        raise UsageError(
            f"{path} holds no SQL files",
            code="usage.no-sql",
            hint=f"files that end in {', '.join(SUFFIXES[:4])} are read; name other files one by one",
        )
    top = None if follow_links else path.resolve()
    here = "" if path.is_absolute() else os.getcwd()  # noqa: PTH109
    below = os.path.join(here, root or path, "")  # noqa: PTH118
    for file in files:
        whole = os.path.join(here, file.removeprefix("./"))  # noqa: PTH118 - text, as there may be thousands
        plain = os.sep == "/" and whole.startswith(below) and whole.isascii()
        name = whole[len(below) :] if plain else _relative(Path(file), root or path)
        yield link_out(name) if file in links and _leaves(Path(file), top) else _read(file, name, found=True)


def _each_once(paths: Sequence[str], links: Collection[str]) -> list[str]:
    """Leave out links to files that are listed themselves, or by an earlier link."""
    if not links:
        return list(paths)
    known = {os.path.realpath(path) for path in paths if path not in links}
    kept = []
    for path in paths:
        behind = os.path.realpath(path) if path in links else None
        renamed = behind is not None and os.path.basename(path) != os.path.basename(behind)  # noqa: PTH119
        if behind is not None and behind in known and not (renamed and _is_of_dbt(Path(path))):
            continue
        if behind is not None:
            known.add(behind)
        kept.append(path)
    return kept


def _is_of_dbt(path: Path) -> bool:
    """Return whether a file is in a dbt project, where its name is that of a model."""
    return any((folder / "dbt_project.yml").exists() for folder in path.absolute().parents)


def _leaves(path: Path, top: Path | None) -> bool:
    """Return whether a path is a link that leads out of a folder; never where there is no folder to stay in."""
    return top is not None and path.is_symlink() and leads_out(path, top)


def _walk(
    folder: str, found: list[str], links: set[str], seen: set[tuple[int, int]], depth: int, top: Path | None
) -> None:
    try:
        here = os.stat(folder)  # noqa: PTH116 - of thousands of folders, the methods of paths take as long as the system
        if (here.st_dev, here.st_ino) in seen or depth > 100:
            return
        seen.add((here.st_dev, here.st_ino))
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=_name_of)
    except OSError:
        # Read as a file, it yields the diagnostic with the reason.
        found.append(folder)
        if os.path.islink(folder):  # noqa: PTH114
            links.add(folder)
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        try:
            is_folder = entry.is_dir()
        except OSError:
            is_folder = False
        if is_folder and entry.is_symlink() and _leaves(Path(entry.path), top):
            found.append(entry.path)
            links.add(entry.path)
        elif is_folder:
            if entry.name not in _SKIPPED and not (entry.name == _BUILT and _holds_project(folder)):
                _walk(entry.path, found, links, seen, depth + 1, top)
        elif is_sql(entry.name):
            found.append(entry.path)
            if entry.is_symlink():
                links.add(entry.path)


def _name_of(entry: os.DirEntry[str]) -> str:
    return entry.name


def _holds_project(folder: str) -> bool:
    return Path(folder, "dbt_project.yml").exists()


def _read(path: Path | str, name: str, *, found: bool = False) -> Script | Diagnostic:
    """Read a file. One that was named may be a pipe; one found in a folder may not: it could block for ever."""
    try:
        place = str(path)  # of thousands of files, the methods of paths take as long as the system does
        mode = os.stat(place)  # noqa: PTH116
        if not stat.S_ISREG(mode.st_mode) and (found or not stat.S_ISFIFO(mode.st_mode)):
            return _unreadable(
                name,
                f"the folder {Path(path).name} cannot be read" if stat.S_ISDIR(mode.st_mode) else "not a regular file",
            )
        if mode.st_size > MAX_BYTES:
            return _unreadable(name, f"{mode.st_size // 2**20} MiB; at most {MAX_BYTES // 2**20} are read")
        data = _data(place, mode.st_size) if stat.S_ISREG(mode.st_mode) else b""
        if len(data) != mode.st_size or not data:  # it grows, or is a pipe
            with open_given(Path(path)) as file:
                data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        return _unreadable(name, _reason(error))
    if len(data) > MAX_BYTES:
        return _unreadable(name, f"more than {MAX_BYTES // 2**20} MiB")
    return _script(name, data)


def _data(place: str, size: int) -> bytes:
    """What one read of the system gets of a file: of thousands of files, objects around it take as long."""
    number = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(number, size + 1)
    finally:
        os.close(number)


def _script(name: str, data: bytes) -> Script | Diagnostic:
    try:
        text, guessed = decode(data)
    except ValueError as error:
        return Diagnostic("not-sql", "error", f"cannot be read as text: {error}", name)
    if guessed is None:
        is_text = not data.startswith(_MARKS)  # and no more
        return Script(name, text, text_digest=digest_of(data if is_text else text.encode("utf-8", "surrogatepass")))
    return Script(name, text, note=Diagnostic("unreadable", "info", f"not UTF-8; read as {guessed}", name))


def _relative(path: Path, root: Path) -> str:
    """The path below the root, or the file's name if it is not below it: absolute paths are never stored."""
    try:
        relative = path.absolute().relative_to(root.absolute())
    except ValueError:
        try:
            relative = path.resolve().relative_to(root.resolve())
        except (ValueError, OSError, RuntimeError):
            relative = Path(path.name)
    # Undecodable bytes of a name arrive as surrogates, which no store or terminal takes.
    return PurePosixPath(*relative.parts).as_posix().encode("utf-8", "backslashreplace").decode("utf-8")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__


def link_out(name: str) -> Diagnostic:
    """The note of a link that leads out of the folder and is not read."""
    return Diagnostic("unreadable", "warning", "a link out of the folder; --follow-links reads what is behind it", name)


def folder_out(name: str, folder: str) -> Diagnostic:
    """The note of a folder that a file of settings names, and that is not read, as it is outside of the checkout."""
    folder = folder.encode("utf-8", "backslashreplace").decode()
    return Diagnostic("unreadable", "warning", f"names {folder}, outside of the folder; --follow-links reads it", name)


def _unreadable(name: str, reason: str) -> Diagnostic:
    return Diagnostic("unreadable", "error", f"cannot be read: {reason}", name)
