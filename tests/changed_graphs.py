"""Random graphs and random changes of them, for tests of derived indexes."""

from __future__ import annotations

import hashlib
from random import Random
from typing import NamedTuple

from govtool.model import ColumnRef, Derivation, Diagnostic, Edge, EdgeKind, OutputColumn, Statement

PATHS = ("a", "b", "c", "d.e", "d.f", "items[].x", "q", "?")
MODES = ("replace",) * 5 + ("append", "append", "declare", "drop", "rename", "update", "delete")
Fragments = list[list[Derivation]]


class Warehouse(NamedTuple):
    """What derivations are drawn from."""

    datasets: list[str]
    files: list[str]
    plain: float
    """The share of scripts' drops, renames, temporary tables and open stars that is left out."""


def warehouse(draw: Random) -> Warehouse:
    """A small dense warehouse of scripts, or a sparse one of views."""
    plain = draw.random() < 0.7
    count = 150 if plain else draw.choice([4, 8, 20, 60])
    files = [f"f{i}.sql" for i in range(60 if plain else draw.choice([3, 10, 40]))]
    return Warehouse([f"s{i % 3}.t{i}" for i in range(count)], files, 0.93 if plain else 0.0)


def derivation(draw: Random, of: Warehouse) -> Derivation:
    """A derivation of any kind."""
    while True:
        mode = draw.choice(MODES)
        temporary = draw.random() < 0.12
        edges = tuple(_edge(draw, of) for _ in range(draw.randrange(5)))
        special = temporary or mode in ("drop", "rename") or any(edge.source.path == "?" for edge in edges)
        if not special or draw.random() >= of.plain:
            break
    noted = draw.random() < 0.2
    fingerprint = hashlib.sha256(str(draw.randrange(60)).encode()).hexdigest()[:6]
    kind = draw.choice(["create_view", "create_table", "insert", "select"])
    statement = Statement(
        fingerprint, kind, "postgres", draw.choice(of.files), draw.randrange(1, 6), f"src{draw.randrange(2)}", "sql",
        count=draw.randrange(1, 3),
    )  # fmt: skip
    return Derivation(
        draw.choice(of.datasets), "temporary" if temporary else "view", mode, statement,
        tuple(OutputColumn(p, draw.choice([None, "int", "text"])) for p in draw.sample(PATHS[:-2], draw.randrange(4))),
        edges=edges,
        references=tuple(_named(draw, of) for _ in range(draw.randrange(2))),
        diagnostics=(Diagnostic("opaque", "warning", f"note {draw.randrange(4)}"),) if noted else (),
        status="partial" if noted else "understood",
    )  # fmt: skip


def _named(draw: Random, of: Warehouse) -> ColumnRef:
    return ColumnRef(draw.choice(of.datasets), draw.choice([*PATHS[:3], "*"]))


def _edge(draw: Random, of: Warehouse) -> Edge:
    source, target = draw.choice(PATHS), draw.choice(PATHS)
    if draw.random() < 0.2:
        source = target = "?"
    elif draw.random() < 0.15:
        source = "*"
    kind = draw.choice([EdgeKind.IDENTITY, EdgeKind.TRANSFORMATION, EdgeKind.FILTER])
    if draw.random() < 0.1:
        source, target, kind = "*", "*", EdgeKind.READ
    elif "?" in (source, target) or source == "*":
        kind = EdgeKind.OPAQUE
    elif kind is EdgeKind.FILTER:
        target = "*"
    functions = tuple(draw.sample(["lower", "md5", "sum"], draw.randrange(2)))
    reason = "why" if kind is EdgeKind.OPAQUE else None
    return Edge(
        ColumnRef(draw.choice(of.datasets), source), target, kind, functions, arm=draw.randrange(2), reason=reason
    )


def fragments(draw: Random, of: Warehouse) -> Fragments:
    """Some fragments."""
    return [[derivation(draw, of) for _ in range(draw.randrange(1, 14))] for _ in range(draw.randrange(1, 12))]


def changed(draw: Random, of: Warehouse, before: Fragments) -> Fragments:
    """The fragments with some derivations replaced, removed and added, and perhaps a fragment more."""
    found = [list(one) for one in before]
    for _ in range(draw.randrange(1, 3)):
        one = draw.choice(found)
        what = draw.random()
        if what < 0.4 and one:
            one[draw.randrange(len(one))] = derivation(draw, of)
        elif what < 0.6 and one:
            one.pop(draw.randrange(len(one)))
        elif what < 0.8:
            one.insert(draw.randrange(len(one) + 1), derivation(draw, of))
        else:
            found.append([derivation(draw, of)])
    return found
