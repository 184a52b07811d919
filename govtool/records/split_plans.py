"""Plans taken apart for a store, and put together again.

Three parts: the plan itself, which is equal for every run of a job; the listings of files and the session, which are
a run's own; and private values (literals, rows that the driver held), which a store may be told to forget.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from govtool.errors import FormatError, UsageError
from govtool.records.execute.inputs import relations
from govtool.records.lake.leaf_options import table_options, without_table
from govtool.records.leaves import with_relations
from govtool.records.plan import codec
from govtool.records.plan.nodes import LocalRows, Plan, Relation, Session, Union
from govtool.records.plan.size import refuse_large
from govtool.records.plan.tree import field_names
from govtool.records.plan.types import Struct

_MADE = "govtool.files"
"""The option of a listing of written files that holds how many the write made, where others than these are there."""
_NO_SESSION = Session("", True, "UTC")
_HOLE = "p"
_NUMBERED = frozenset({"Attribute", "Named"})
"""Classes whose numbers are those of columns."""
_OTHERWISE_NUMBERED = frozenset({"Variable", "Definition", "Reference"})
_PLACED = frozenset({"Relation", "Write"})
"""Classes that name a dataset."""
_PRIVATE_FIELDS = {"Literal": "value", LocalRows.__name__: "rows"}
"""Fields that hold private values, by class."""


@dataclass(frozen=True, slots=True)
class PlanParts:
    """A plan in three parts, each as text, and what it reads.

    Attributes:
        digest: SHA-256 of ``body``.
        body: The plan, with holes for private values and without files and session.
        listings: The files of its leaves, and the session.
        values: The private values, by hole.
        datasets: What its leaves read, by number.
        shape: SHA-256 of the plan without paths and the numbers of its columns, which are other ones in each action
            of a program: plans of one shape are alike but for these.
    """

    digest: str
    body: str
    listings: str
    values: str
    datasets: tuple[tuple[int, str], ...]
    shape: str


def taken_apart(plan: Plan) -> PlanParts:
    """Separate a plan from its files, its session and its private values."""
    leaves = relations(plan.root)
    listed = tuple(
        Relation(
            leaf.leaf, leaf.dataset, leaf.format, leaf.files, (), Struct(()), options=table_options(leaf),
            version=leaf.version,
        )
        for leaf in leaves
    )  # fmt: skip
    listings = codec.dumps(Plan(Union(listed, ()), plan.session))
    bare = with_relations(plan.root, _unlisted)
    encoded = codec.encode(Plan(bare, _NO_SESSION))
    values: list[Any] = []
    for row, place in _private_places(encoded["objects"]):
        if row[place] is not None and not isinstance(row[place], bool):
            values.append(row[place])
            row[place] = [_HOLE, len(values) - 1]
    body = _text(encoded)
    datasets = tuple((leaf.leaf, leaf.dataset) for leaf in leaves)
    return PlanParts(_digest(body), body, listings, _text(values), datasets, _shape(encoded, body))


def _shape(encoded: dict[str, Any], body: str) -> str:
    """The shape of an encoded plan, which is changed."""
    numbers: dict[int, int] = {}
    for row in encoded["objects"]:
        kind = row[0]
        if kind in _NUMBERED:
            at = _place(kind, "id")
            row[at] = numbers.setdefault(row[at], len(numbers))
        elif kind in _PLACED:
            row[_place(kind, "dataset")] = ""
        if kind in _OTHERWISE_NUMBERED or (kind == "Relation" and row[_place(kind, "metadata")] != ["l"]):
            return _digest(body)
    return _digest(_text(encoded))


@cache
def _place(kind: str, name: str) -> int:
    """The place of a field in a row."""
    return field_names(codec.CLASSES[kind]).index(name) + 1


def put_together(body: str, listings: str, values: str | None, names: dict[int, str]) -> Plan:
    """The plan of a write.

    Args:
        body: As ``PlanParts`` has it.
        listings: As ``PlanParts`` has it.
        values: As ``PlanParts`` has it; None if they were removed from the store.
        names: Datasets by leaf, as the graph calls them.

    Raises:
        UsageError: The plan has private values, and they were removed (``usage.forgotten``); or it is too large
            (``usage.trace-size``).
        FormatError: A part is not what was written.
    """
    around = codec.loads(listings)
    listed = {leaf.leaf: leaf for leaf in relations(around.root)}
    try:
        encoded = json.loads(body)
        known = None if values is None else json.loads(values)
        _fill(encoded["objects"], known)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise FormatError("a stored plan cannot be read: a part of it is missing", code="store.format-plan") from error
    bare = codec.decode(encoded)
    refuse_large(bare.root)

    def placed(leaf: Relation) -> Relation:
        own = listed.get(leaf.leaf)
        files, version = ((), "") if own is None else (own.files, own.version)
        if own is not None and table_options(own):
            leaf = replace(leaf, options=(*leaf.options, *table_options(own)))
        return _with(leaf, files, version or listing_version(files), names.get(leaf.leaf, leaf.dataset))

    return Plan(with_relations(bare.root, placed), around.session)


def listing_version(files: Any) -> str:
    """A version of plain files: equal where URIs, sizes and times are equal."""
    text = json.dumps([(each.uri, each.size, each.modified, each.etag) for each in files])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def relation_text(leaf: Relation, session: Session) -> str:
    """A leaf with its files as text."""
    return codec.dumps(Plan(leaf, session))


def relation_of(text: str, dataset: str) -> Relation | None:
    """Read what ``relation_text`` wrote; None of an empty text.

    Raises:
        FormatError: It is something else.
    """
    if not text:
        return None
    root = codec.loads(text).root
    if not isinstance(root, Relation):
        raise FormatError("a stored listing cannot be read: it is none of files", code="store.format-plan")
    return _with(root, root.files, root.version or listing_version(root.files), dataset)


def in_part(left: Relation, made: int) -> Relation:
    """A listing of files that a write left, marked as a part of those that it made.

    Args:
        left: The files that were there when the write was recorded.
        made: How many the write made.
    """
    return replace(left, options=(*left.options, (_MADE, str(made))))


def files_made(left: Relation) -> int:
    """The number of files that a write made, of which a listing may be a part."""
    return int(dict(left.options).get(_MADE, len(left.files)))


def made_nothing(left: Relation) -> bool:
    """Return whether a write made no files: one whose files are gone made some."""
    return not (left.files or files_made(left))


def readable(left: Relation) -> Relation:
    """A listing of written files as a reader takes it: with the options of its format alone."""
    return replace(left, options=tuple(option for option in left.options if option[0] != _MADE))


def _with(leaf: Relation, files: Any, version: str, dataset: str) -> Relation:
    return replace(leaf, files=tuple(files), version=version, dataset=dataset)


def _unlisted(leaf: Relation) -> Relation:
    return replace(_with(leaf, (), "", leaf.dataset), options=without_table(leaf))


def _private_places(objects: list[list[Any]]) -> Iterator[tuple[list[Any], int]]:
    for row in objects:
        name = _PRIVATE_FIELDS.get(row[0])
        if name is not None:
            yield row, _place(row[0], name)


def _fill(objects: list[list[Any]], values: list[Any] | None) -> None:
    for row, place in _private_places(objects):
        hole = row[place]
        if not (isinstance(hole, list) and hole and hole[0] == _HOLE):
            continue
        if values is None:
            raise UsageError(
                "the private values of this write were removed from the store: its rows cannot be traced",
                code="usage.forgotten",
            )
        row[place] = values[hole[1]]


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
