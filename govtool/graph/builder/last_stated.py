"""Statements with different facts about one dataset or column: the last one counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StatedOrder:
    """What the order of derivations follows from."""

    columns: Mapping[str, Any]
    """Per derivation ``d.source``, ``d.session``, ``d.file``, ``d.first_seen`` and ``d.line``."""
    texts: Sequence[str]
    """The texts that they number."""


def enter_last(found: Any, owner: Any, value: Any, derivation: Any, rank: Any, order: StatedOrder) -> None:
    """Enter the value of each owner: that of the highest rank; there the last of its file or session.

    Of several files that with the last name counts, so that the result does not depend on the division into fragments.

    Args:
        found: Per owner its value; changed.
        owner: The dataset or column of each statement.
        value: The stated value: the number of a text.
        derivation: The derivation of each statement.
        rank: Higher ones prevail.
        order: The order of derivations.
    """
    import numpy as np

    top = np.full(len(found), -1, np.int64)
    np.maximum.at(top, owner, rank)
    best = np.flatnonzero(rank == top[owner])
    owner, value, derivation = owner[best], value[best], derivation[best]
    found[owner] = value
    disagree = np.flatnonzero(np.isin(owner, owner[value != found[owner]]))
    text, c = order.texts, order.columns
    places = [c[f"d.{name}"][derivation[disagree]].tolist() for name in ("source", "session", "file", "first_seen")]
    lines = c["d.line"][derivation[disagree]].tolist()
    keys = [
        (text[source], text[session] or text[file], text[seen], line, text[what])
        for source, session, file, seen, line, what in zip(*places, lines, value[disagree].tolist(), strict=True)
    ]
    ordered = disagree[sorted(range(len(keys)), key=keys.__getitem__)]
    # One by one: numpy does not define which of several assignments to one place counts.
    for one, what in zip(owner[ordered].tolist(), value[ordered].tolist(), strict=True):
        found[one] = what
