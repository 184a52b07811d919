"""Rows of a run by address: ``BestBid[B1]``, ``agg/BestBid@2[BidId=B1]``, ``M_dealer1.Cars@1``.

    [NODE/]RELATION[@EXECUTION]["[" value or column=value {"," …} "]"]

A dataset that a program wrote is also called by its place, or the end of it: ``out/top``. Values without a column are
those of the first columns; a quote within quotes is doubled. State is named by its slot,
``MODULE.RELATION``; a version of it is what an invocation left.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from govtool.errors import AmbiguousNameError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.model.workflow_run import WorkflowRun
    from govtool.workflow.modules.run_tuples import RunFiles

_ADDRESS = re.compile(
    r"(?:(?P<node>[^/\[\]@]+)/)?(?P<relation>[^\[\]@]+)(?:@(?P<execution>[0-9]{1,9}))?(?:\[(?P<key>.*)\])?", re.DOTALL
)
_PART = re.compile(r"""((?:'[^']*'|"[^"]*"|[^,'"])*)(?:,|\Z)""", re.DOTALL)
_NAMED = re.compile(r"\s*([A-Za-z_][\w.]*)\s*=(.*)", re.DOTALL)
_SHOWN = 20
"""Candidates that a message lists."""
_KEYS = 2_000
"""Rows whose keys are looked through for one like a key that there is not."""

Key = tuple[tuple[str | int, str], ...]
"""Columns, by name or place, with values as text."""


@dataclass(frozen=True, slots=True)
class RowAddress:
    """What a text names.

    Attributes:
        relation: A relation, or a slot of state.
        node: The node of the workflow that wrote it; None: any.
        execution: The execution; None: any.
        key: Which of its rows; empty: all.
    """

    relation: str
    node: str | None
    execution: int | None
    key: Key


@dataclass(frozen=True, slots=True)
class AddressedRelation:
    """A relation as one invocation wrote it.

    Attributes:
        relation: Its name; the slot of state.
        node: The node that wrote it.
        execution: The execution.
        path: Its place.
        is_kept: It is an output of the execution.
    """

    relation: str
    node: str
    execution: int
    path: str
    is_kept: bool

    def __str__(self) -> str:
        """Its address."""
        return f"{self.node}/{self.relation}@{self.execution}"


def parse_address(text: str) -> RowAddress:
    """Read an address.

    Raises:
        UsageError: It is not an address (``usage.address``).
    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"{text!r} names no rows", code="usage.address", hint="RELATION[key], NODE/RELATION@EXECUTION[column=value]"
        )
    key = tuple(_key(found["key"])) if found["key"] is not None else ()
    execution = None if found["execution"] is None else int(found["execution"])
    return RowAddress(found["relation"].strip(), found["node"], execution, key)


def _key(text: str) -> Iterator[tuple[str | int, str]]:
    at, place = 0, 0
    while at < len(text):
        found = _PART.match(text, at)
        if found is None:
            raise UsageError(f"[{text}] is no key: a quote is not closed", code="usage.address")
        named = _NAMED.fullmatch(found[1])
        yield (named[1], _plain(named[2])) if named else (place, _plain(found[1]))
        at, place = found.end(), place + 1


def _plain(text: str) -> str:
    bare = text.strip()
    quote = bare[:1]
    is_quoted = len(bare) > 1 and quote == bare[-1] and quote in "'\""
    return bare[1:-1].replace(quote * 2, quote) if is_quoted else bare


def versions_of(run: WorkflowRun) -> list[AddressedRelation]:
    """All that the whole executions of a run wrote, in order."""
    found = []
    for each in run.invocations:
        if each.execution <= run.whole:
            made = [(name, path, name in each.kept) for name, path in each.outputs]
            made += [(slot, path, False) for _, slot, path in each.new_state]
            found += [AddressedRelation(name, each.node, each.execution, path, kept) for name, path, kept in made]
    return found


def select_versions(run: WorkflowRun, address: RowAddress) -> list[AddressedRelation]:
    """The versions that an address may mean.

    Raises:
        UnknownNameError: There is no such relation, node or execution, with near names.
    """
    every = versions_of(run)
    own = called(every, address)
    if not own:
        names = [each.relation for each in every]
        if address.node is None:
            raise _unknown("relation", address.relation, names)
        raise _unknown("relation", _whole(address), [*names, *(f"{each.node}/{each.relation}" for each in every)])
    if address.execution is None:
        return own
    left = [each for each in own if each.execution == address.execution]
    if not left:
        known = [str(each.execution) for each in own]
        raise _unknown("execution", str(address.execution), known, f"{address.relation} of execution")
    return left


class Written(Protocol):
    """What an invocation wrote: its relation, its node and its place."""

    @property
    def relation(self) -> str:
        """Its name."""

    @property
    def node(self) -> str:
        """The node that wrote it."""

    @property
    def path(self) -> str:
        """Its place."""


_Written = TypeVar("_Written", bound=Written)


def called(every: Sequence[_Written], address: RowAddress) -> list[_Written]:
    """The versions of the relation that an address means, in all executions."""
    own = [each for each in every if _is_called(each.relation, address.relation)]
    if address.node is None:
        return own
    whole = _whole(address)
    return (
        [each for each in every if each.relation == whole]  # relations of programs may be called after folders
        or [each for each in own if each.node == address.node]
        or [each for each in every if _lies_at(each.path, whole)]
    )


def _whole(address: RowAddress) -> str:
    return f"{address.node}/{address.relation}"


def _lies_at(path: str, text: str) -> bool:
    """Whether a text is the end of the place of a dataset that a program wrote, as PLACE@NUMBER."""
    return f"/{path.rpartition('@')[0]}".endswith(f"/{text}")


def _is_called(relation: str, text: str) -> bool:
    return relation == text or ("." not in text and relation.rpartition(".")[2] == text)


def _unknown(noun: str, text: str, known: Iterable[str], what: str = "") -> UnknownNameError:
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(text, names, 3, 0.4)
    return UnknownNameError(
        f"the run wrote no {what or noun} {text}", code=f"usage.unknown-{noun}", nearest=tuple(near or names[:_SHOWN])
    )


def find_version(run: WorkflowRun, files: RunFiles, address: RowAddress) -> AddressedRelation:
    """The one version that an address means: the only one, or the only one that has such a row.

    Raises:
        UnknownNameError: There is none.
        AmbiguousNameError: There are several (``usage.ambiguous-relation``).
    """
    found = _distinct(select_versions(run, address))
    if len(found) > 1 and address.key:
        found = _with_row(run, files, found, address.key)
        if not found:
            raise _no_such_row(run, files, address, _distinct(select_versions(run, address)))
    if len(found) > 1:
        more = f", such as the first {_SHOWN}" if len(found) > _SHOWN else ""
        times = f"{address.relation} was written {len(found)} times{more}"
        raise AmbiguousNameError(
            f"{len(found)} versions of {address.relation} have such a row{more}" if address.key else times,
            code="usage.ambiguous-relation",
            nearest=tuple(map(str, found[:_SHOWN])),
            hint=f"name one: {found[-1]}{_key_text(address.key)}",
        )
    return found[0]


def _key_text(key: Key) -> str:
    """A key as an address has it."""
    parts = []
    for name, value in key:
        text = "'" + value.replace("'", "''") + "'" if re.search(r"[,'\"=\[\]]|^\s|\s$|^$", value) else value
        parts.append(text if isinstance(name, int) else f"{name}={text}")
    return f"[{','.join(parts)}]" if parts else ""


def _distinct(found: Sequence[AddressedRelation]) -> list[AddressedRelation]:
    """Versions of different places: a relation that was handed on as it came is one."""
    return list({each.path: each for each in reversed(found)}.values())[::-1]


def _with_row(
    run: WorkflowRun, files: RunFiles, versions: Sequence[AddressedRelation], key: Key
) -> list[AddressedRelation]:
    """The versions that have a row of a key; they need not have the same columns.

    Raises:
        UnknownNameError: None has such a column (``usage.unknown-column``).
        UsageError: None has as many columns as the key has values (``usage.address``).
    """
    found, errors = [], []
    for each in versions:
        rows = files.rows(run.relations[each.path])
        try:
            places = key_places(rows.columns, key)
        except UsageError as error:
            errors.append(error)
            continue
        if any(matches(row, places) for row in rows.values):
            found.append(each)
    if len(errors) == len(versions):
        raise errors[0]
    return found


def key_places(columns: Sequence[str], key: Key) -> tuple[tuple[int, str], ...]:
    """The places of a key's columns, with values.

    Raises:
        UnknownNameError: There is no such column (``usage.unknown-column``), with near names.
        UsageError: There are fewer columns than values (``usage.address``).
    """
    lower = [name.lower() for name in columns]
    found = []
    for column, value in key:
        if isinstance(column, int):
            if column >= len(columns):
                raise UsageError(f"a key of {len(key)} values; there are {len(columns)} columns", code="usage.address")
            found.append((column, value))
        elif column.lower() in lower:
            found.append((lower.index(column.lower()), value))
        else:
            near = difflib.get_close_matches(column, columns, 3, 0.3) or columns
            raise UnknownNameError(f"no column {column}", code="usage.unknown-column", nearest=tuple(near))
    return tuple(found)


def matches(row: Sequence[Any], places: Iterable[tuple[int, str]]) -> bool:
    """Return whether a row has the values of a key."""
    return all(key_text(row[place]) == value for place, value in places)


def key_text(value: Any) -> str:
    """A value as a key has it."""
    from govtool.records.cells import json_value
    from govtool.workflow.semirings.texts import value_text

    return value_text(json_value(value))


def _no_such_row(
    run: WorkflowRun, files: RunFiles, address: RowAddress, versions: Sequence[AddressedRelation]
) -> UnknownNameError:
    """The error of a key that no version has, with keys near it."""
    near: dict[str, None] = {}
    for each in versions:
        rows = files.rows(run.relations[each.path])
        try:
            near.update(dict.fromkeys(unknown_row(address, rows.columns, rows.values).nearest))
        except UsageError:  # a version without these columns
            continue
    return UnknownNameError(
        f"no version of {address.relation} has such a row",
        code="usage.unknown-row",
        nearest=tuple(near)[:_SHOWN],
        hint=f"name one of them to see candidates: {versions[0]}",
    )


def unknown_row(address: RowAddress, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> UnknownNameError:
    """The error of a key that no row has, with near keys."""
    places = [place for place, _ in key_places(columns, address.key)]
    known = dict.fromkeys(", ".join(key_text(row[place]) for place in places) for row in rows[:_KEYS])
    wanted = ", ".join(value for _, value in address.key)
    return UnknownNameError(
        f"no row of {address.relation} has the key [{wanted}]",
        code="usage.unknown-row",
        nearest=tuple(difflib.get_close_matches(wanted, list(known), 3, 0.3)),
    )
