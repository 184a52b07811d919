"""Facts of a run of SQL that a later run is compared by: content, software, settings and statements."""

from __future__ import annotations

import contextlib
import hashlib
import platform
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from govtool.model.run import KEPT_FROM, RunInput, RunOutput, Software
from govtool.model.version import ContentIdentity, DataFile, content_identity
from govtool.release import __version__

if TYPE_CHECKING:
    from govtool.app.workflow_runs.programs.sql import SqlProgram
    from govtool.records.plan.nodes import File, Relation, Session

_PACKAGES = ("duckdb", "pyarrow", "sqlglot")
"""Packages whose versions may change what a statement gives."""
_CLAUSES = frozenset({"SELECT", "FROM", "WHERE", "JOIN", "GROUP_BY", "ORDER_BY", "HAVING", "LIMIT", "UNION"})
"""Tokens that begin a line of a statement's text."""


def local_file(file: File) -> Path:
    """The path of a file of a run."""
    return Path(unquote(urlparse(file.uri).path))


def content_of(files: Iterable[File]) -> ContentIdentity:
    """The identity of files by content, whatever they are called and wherever they are."""
    return content_identity(
        DataFile("", file.size, _digest(local_file(file), file.size, file.modified)) for file in files
    )


@lru_cache(maxsize=4096)
def _digest(path: Path, size: int, modified: int) -> str:
    """The SHA-256 of a file; size and time stand for its content as long as a process lives."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def input_facts(leaves: Iterable[Relation], origins: Mapping[str, str]) -> tuple[RunInput, ...]:
    """The inputs of a statement.

    Args:
        leaves: What its plan reads.
        origins: The dataset that a copy was made of, by the copy's.
    """
    from govtool.app.datasets.places import path_id

    found = {path_id(leaf.dataset): leaf for leaf in leaves}
    return tuple(
        RunInput(
            name,
            rows=sum(_rows(local_file(file)) for file in leaf.files),
            bytes=sum(file.size for file in leaf.files),
            files=len(leaf.files),
            identity=content_of(leaf.files),
            options=((KEPT_FROM, origins[name]),) if name in origins else (),
        )
        for name, leaf in sorted(found.items())
    )


def output_facts(made: Relation, mode: str, before: Iterable[File], digests: bool | None = None) -> RunOutput:
    """The output of a statement.

    Args:
        made: What it wrote.
        mode: ``append`` or ``overwrite``.
        before: The files that it added to.
        digests: Make a digest of the rows; None: of small outputs only.
    """
    from govtool.app.datasets.identify import SMALL_OUTPUT
    from govtool.app.datasets.places import path_id
    from govtool.app.datasets.row_digest import digest_rows

    paths = [local_file(file) for file in made.files]
    size = sum(file.size for file in made.files)
    wanted = digests if digests is not None else size <= SMALL_OUTPUT
    return RunOutput(
        path_id(made.dataset),
        mode,
        rows=sum(map(_rows, paths)),
        bytes=size,
        files=len(paths),
        identity=content_of((*before, *made.files)),
        content=content_of(made.files),
        row_digest=(digest_rows(paths, Path(made.dataset)) or "") if wanted else "",
    )


def _rows(path: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def software_facts(program: SqlProgram) -> tuple[Software, ...]:
    """The program's own digest, and the software that reads and evaluates it."""
    from importlib.metadata import PackageNotFoundError, version

    found = [Software(f"script:{program.name}", program.digest or _statements_digest(program))]
    found += [Software("govtool", __version__), Software("python", platform.python_version())]
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found.append(Software(name, version(name)))
    return tuple(sorted(found))


def _statements_digest(program: SqlProgram) -> str:
    """The digest of a program that is no single file."""
    return hashlib.sha256("\0".join(map(repr, program.statements)).encode()).hexdigest()


def settings_facts(program: SqlProgram, session: Session) -> dict[str, str]:
    """The settings that may change what a statement gives."""
    return {
        "spark.sql.ansi.enabled": str(session.ansi).lower(),
        "spark.sql.caseSensitive": str(session.case_sensitive).lower(),
        "spark.sql.session.timeZone": session.zone,
        "sql.dialect": program.dialect,
    }


def statement_text(query: str, dialect: str) -> str:
    """A query without layout, comments and literals, a clause a line, so that equal work reads equal.

    Tokens and not trees are written: a generator of SQL may depend on the literals that are left out here.
    """
    from sqlglot.dialects.dialect import Dialect

    words: list[str] = []
    for token in Dialect.get_or_raise(dialect).tokenize(query):
        kind = token.token_type.name
        is_literal = kind == "NUMBER" or kind.endswith("STRING")
        word = "?" if is_literal else token.text if kind in ("VAR", "IDENTIFIER") else token.text.upper()
        words.append(f"\n{word}" if words and kind in _CLAUSES else word)
    return " ".join(words).replace(" \n", "\n")


def machine() -> str:
    """The class of machine: ``Linux-x86_64``."""
    return f"{platform.system()}-{platform.machine()}"
