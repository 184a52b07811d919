"""Names that may be one dataset: the same last parts under another namespace or catalog, and columns that agree.

Likeness proves nothing, so nothing is merged: this proposes, and a person writes it into ``[aliases]``. Proposals that
share what they put in front are told as one pattern.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from govtool.graph.index import Index
from govtool.names import OBJECT_STORES, ROOTED, split_name, unquote

_PLACE = re.compile(rf"(?:{'|'.join(ROOTED)}):|(?:az|{'|'.join(OBJECT_STORES)})://")

ENOUGH = 0.5
"""Share of the smaller table's columns that the other must have, too."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A line for ``[aliases]`` and why."""

    pattern: str
    name: str
    datasets: tuple[tuple[str, str], ...]
    """The pairs that it covers, sorted."""
    agreeing: float
    """The share of columns that agree, over all pairs; 0.0 to 1.0."""


def propose(index: Index) -> tuple[Proposal, ...]:
    """Names of datasets that may be one, those that cover most first.

    A pair is one name that is the end of another; it is left out where a third name would fit as well, or where the
    columns that are known of both do not agree.
    """
    known = {d: _parts(index.dataset_name(d)) for d in index.datasets() if index.dataset_kind(d) != "query"}
    by_end: dict[str, list[int]] = defaultdict(list)
    for dataset, parts in known.items():
        by_end[parts[-1]].append(dataset)
    found: dict[tuple[str, str], list[tuple[str, str, float]]] = defaultdict(list)
    for group in by_end.values():
        for long, short in _pairs(group, known):
            share = _agreement(index, long, short)
            if share is None or share >= ENOUGH:
                names = index.dataset_name(long), index.dataset_name(short)
                found[_fronts(*names)].append((*names, 0.0 if share is None else share))
    return tuple(
        sorted(
            (_proposal(fronts, pairs) for fronts, pairs in found.items()), key=lambda p: (-len(p.datasets), p.pattern)
        )
    )


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a name without its namespace, folded: letter case and quotes tell nothing across systems."""
    if _PLACE.match(name):  # a path: its folders are the parts
        return tuple(part.lower() for part in name.split("/")[1:] if part) or (name,)
    text = name.rpartition("/")[2] if re.match(r"[A-Za-z][\w+.-]*:", name) else name
    return tuple(unquote(part).lower() for part in split_name(text) if part) or (name,)


def _pairs(group: Sequence[int], known: dict[int, tuple[str, ...]]) -> Iterable[tuple[int, int]]:
    """A name and the one that it ends with, if there is just one; two of the same parts: the longer text first."""
    for one in group:
        ends = [
            other
            for other in group
            if other != one
            and len(known[other]) >= min(2, len(known[one]))
            and known[one][-len(known[other]) :] == known[other]
            and (len(known[other]) < len(known[one]) or other < one)
        ]
        if len(ends) == 1:
            yield one, ends[0]


def _agreement(index: Index, one: int, other: int) -> float | None:
    """The share of the columns of the smaller that the other has; None if columns are known of one at most."""
    columns = [{index.path(n).lower() for n in index.columns(d) if not index.is_unknown(n)} for d in (one, other)]
    smaller = min(map(len, columns))
    return len(columns[0] & columns[1]) / smaller if smaller else None


def _fronts(long: str, short: str) -> tuple[str, str]:
    """Return the different beginnings of names whose endings are the same."""
    same = 0
    while same < min(len(long), len(short)) and long[-1 - same] == short[-1 - same]:
        same += 1
    # From the first separator inside what is shared, so that the rest can be a star.
    first = next((m.end() for m in re.finditer(r"[./]", long) if m.end() >= len(long) - same), None)
    if first is None or long[first:] == "" or not short.endswith(long[first:]):
        return long, short
    return f"{long[:first]}*", f"{short[: len(short) - len(long) + first]}*"


def _proposal(fronts: tuple[str, str], pairs: list[tuple[str, str, float]]) -> Proposal:
    listed = tuple(sorted((long, short) for long, short, _ in pairs))
    agreeing = sum(share for _, _, share in pairs) / len(pairs)
    if len(pairs) == 1:
        return Proposal(*listed[0], listed, agreeing)
    return Proposal(*fronts, listed, agreeing)
