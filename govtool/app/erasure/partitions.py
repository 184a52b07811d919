"""Partitions that an erasure leaves without rows: the name of their folder is a value, so nothing of them stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from govtool.app.erasure.copies import NEW_FILE, CopiedFile, escaped
from govtool.app.erasure.deltas import arrow_schema

if TYPE_CHECKING:
    from govtool.app.erasure.keys import Wanted
    from govtool.records.plan.nodes import Relation

_HIDDEN = "…"
_EXACT = frozenset({"path", "sha256", "rows", "digest", "digests", "salt", "beyond", "store"})
"""Keys of a certificate whose texts are never changed: places in the folder, digests."""


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """Some files of a copy that lie in one folder.

    Attributes:
        relation: What they are files of.
        files: The files.
        rows: Counts their rows.
    """

    relation: Relation
    files: Sequence[CopiedFile]
    rows: Callable[[Sequence[CopiedFile]], int]

    def by_folder(self) -> Iterator[PartitionFiles]:
        """The files of each partition; none where there are no partitions."""
        folders: dict[Path, list[CopiedFile]] = {}
        for file in self.files if self.relation.partitioned else ():
            folders.setdefault(file.path.parent, []).append(file)
        for inside in folders.values():
            yield PartitionFiles(self.relation, inside, self.rows)


@dataclass(frozen=True, slots=True)
class ErasedPartitions:
    """Partitions of a copy that are without rows.

    Attributes:
        folders: Their folders.
        files: The files in them.
        relation: What they are partitions of; None: there is none.
    """

    folders: frozenset[Path] = frozenset()
    files: tuple[CopiedFile, ...] = ()
    relation: Relation | None = None

    def counts(self) -> dict[str, int]:
        """How many there are: their names are values."""
        return {"partitions": len(self.folders), "files": len(self.files)}


def erased_partitions(parts: Iterable[PartitionFiles]) -> ErasedPartitions:
    """Find the partitions of a copy in which no file has a row; several writes may have files in one."""
    folders: dict[Path, list[PartitionFiles]] = {}
    for part in parts:
        for inside in part.by_folder():
            folders.setdefault(inside.files[0].path.parent, []).append(inside)
    empty = {folder: inside for folder, inside in folders.items() if not any(each.rows(each.files) for each in inside)}
    files = tuple(file for inside in empty.values() for each in inside for file in each.files)
    relation = next((inside[0].relation for inside in empty.values()), None)
    return ErasedPartitions(frozenset(empty), files, relation)


def remove_partitions(erased: ErasedPartitions, files: Sequence[CopiedFile], target: Path) -> tuple[CopiedFile, ...]:
    """Remove partitions from a copy, and return the files that are left.

    Of a dataset in Parquet of which none would be left, one without rows keeps the columns.
    """
    left = tuple(file for file in files if file.path.parent not in erased.folders)
    keeps = not left and erased.relation is not None and erased.relation.format == "parquet"
    schema = _schema(erased) if keeps else None
    for file in erased.files:
        file.path.unlink()
    for folder in erased.folders:
        _remove_empty(folder, target)
    if schema is None:
        return left
    import pyarrow.parquet as pq

    place = target / NEW_FILE
    pq.write_table(schema.empty_table(), place)
    return (CopiedFile(place, None, (), True),)


def _schema(erased: ErasedPartitions) -> Any:
    """The columns of a file and those of the partitions."""
    import pyarrow.parquet as pq

    assert erased.relation is not None
    schema = pq.read_schema(erased.files[0].path).remove_metadata()
    for field in arrow_schema(each for each in erased.relation.columns if each.name in erased.relation.partitioned):
        schema = schema if field.name in schema.names else schema.append(field)
    return schema


def _remove_empty(folder: Path, target: Path) -> None:
    while folder != target and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def without_values(wanted: Mapping[str, Iterable[Wanted]]) -> Callable[[str], str]:
    """A function that hides the subject's values where a text has the name of their partition's folder.

    >>> from govtool.app.erasure.keys import Wanted
    >>> hidden = without_values({"users": [Wanted("name", "bob")]})
    >>> hidden("file:///data/name=bob/part-0.parquet")
    'file:///data/name=…/part-0.parquet'
    >>> hidden("file:///data/name=bobby")
    'file:///data/name=bobby'
    """
    pairs = {(each.column, text) for own in wanted.values() for each in own for text in _spellings(each.value)}
    if not pairs:
        return lambda text: text
    named = "|".join(f"{re.escape(column)}(?:=|%3D){re.escape(value)}" for column, value in sorted(pairs))
    pattern = re.compile(rf"(?<![^/])(?:{named})(?![^/,.:;'\s])", re.IGNORECASE)
    return lambda text: pattern.sub(lambda found: re.split("=|%3D", found[0], maxsplit=1)[0] + f"={_HIDDEN}", text)


def _spellings(value: str) -> set[str]:
    """A value as names of folders have it, and these in a URI."""
    once = {value, escaped(value), quote(value, safe="")}
    return once | {quote(each, safe="=+,;@!$&()~") for each in once}


def hidden_in(document: Any, hidden: Callable[[str], str]) -> Any:
    """A certificate, or a part of it, without the subject's values in names of folders."""
    if isinstance(document, str):
        return hidden(document)
    if isinstance(document, (list, tuple)):
        return [hidden_in(each, hidden) for each in document]
    if isinstance(document, dict):
        return {name: each if name in _EXACT else hidden_in(each, hidden) for name, each in document.items()}
    return document


def partition_values(path: Path) -> Iterator[tuple[str, str]]:
    """The partition columns and values in the folders of a path."""
    for part in path.parts[:-1]:
        name, equals, value = part.partition("=")
        if equals:
            yield name, unquote(value)
