"""Datasets in which two versions may differ, from the rows of fragments alone, without an index of either.

Rows that both versions have cancel out wherever they lie. Of the rows that are left, what they make and read is
concerned, and so is what hangs on it: where the order of a file's statements changed, what these make and read; where
a dataset may not stand (a script's temporary table, a dropped one), what it is made of; what an unresolved ``*`` fills
from it. ``concerned`` says more datasets rather than fewer; what is then compared are the facts about them, which need
only the rows that ``FragmentSurvey.speaking`` names.

Everything is arrays: a row is a signature of 128 bits and a few numbers, of its edges only the datasets that it reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.graph.builder.columns import Strings, fields_of, numbered, numbers_of
from govtool.graph.digests import WORDS, unequal
from govtool.model.derivation import HIDDEN as UNKNOWN

OLD, NEW, BOTH = range(3)
"""Whose a fragment is."""

COLUMNS = (
    "target", "target_kind", "mode", "file", "source", "session", "edges.list.element.source_dataset",
    "edges.list.element.source_path",
)  # fmt: skip
"""Columns of a fragment that both versions have."""

_RESETS, _UNSTABLE = 1, 2
_SCALARS = (
    "target", "target_kind", "mode", "source", "file", "session", "fingerprint", "kind", "how", "run", "literals",
)  # fmt: skip
_EDGES = ("source_dataset", "source_path", "target_path", "functions", "reason")


@dataclass(slots=True)
class _Rows:
    """Columns, one item a row of all fragments; ``read_*`` one item for each dataset that a row reads."""

    side: Any
    fragment: Any
    place: Any
    target: Any
    flags: Any
    group: Any
    seen: Any
    line: Any
    signature: Any
    read_row: Any
    read_dataset: Any
    read_star: Any


class FragmentSurvey:
    """Takes in fragments one after the other, then tells what differs."""

    def __init__(self) -> None:
        self._strings = Strings()
        self._parts: dict[str, list[Any]] = {}
        self._count = 0
        self._fragments = 0
        self._rows: _Rows | None = None

    def add(self, table: Any, side: int) -> int:
        """Take in a fragment; returns its number.

        Args:
            table: A ``pyarrow.Table`` of ``govtool.model.columnar.schema()``; for ``BOTH``, ``COLUMNS`` of it will do.
            side: ``OLD``, ``NEW`` or ``BOTH``.
        """
        import numpy as np

        number, self._fragments = self._fragments, self._fragments + 1
        place = 0
        for batch in table.to_batches():
            n = batch.num_rows
            names = _SCALARS if side != BOTH else ("target", "target_kind", "mode", "source", "file", "session")
            text = {name: self._text(batch.column(name)) for name in names}
            self._put("side", np.full(n, side, np.uint8))
            self._put("fragment", np.full(n, number, np.int32))
            self._put("place", np.arange(place, place + n))
            self._put("target", text["target"])
            self._put("flags", self._flags(text))
            has_session = text["session"] > 0
            self._put("group_source", text["source"])
            self._put("group_name", np.where(has_session, text["session"], text["file"]))
            self._put("group_session", has_session)
            self._reads(batch, n)
            if side == BOTH:
                self._put("seen", np.zeros(n, np.int64))
                self._put("line", np.zeros(n, np.int64))
                self._put("signature", np.zeros((n, WORDS), np.uint64))
            else:
                self._put("seen", self._text(batch.column("first_seen")))
                self._put("line", numbers_of(batch.column("line")))
                self._put("signature", self._signatures(batch, text))
            place += n
            self._count += n
            self._rows = None
        return number

    def unlike(self) -> tuple[set[int], set[int]]:
        """Of the fragments that only one version has: datasets that rows of one side speak of, and the groups of
        statements (files, sessions) that are the same on both sides but stand at other places.

        Both are numbers of this survey.
        """
        import numpy as np

        r = self._joined()
        old, new = np.flatnonzero(r.side == OLD), np.flatnonzero(r.side == NEW)
        alone = [side[places] for side, places in zip((old, new), _unequal(r, old, new), strict=True)]
        matched = [np.setdiff1d(side, some) for side, some in zip((old, new), alone, strict=True)]
        moved, mixed = _moved(r, matched, self._strings.texts)
        rows = np.concatenate([*alone, *(side[np.isin(r.group[side], mixed)] for side in matched)])
        return self._datasets_of(rows), set(moved.tolist()) - set(mixed.tolist())

    def concerned(self, seeds: Collection[int], moved: Collection[int]) -> set[str]:
        """The names of all datasets whose facts may differ, once the fragments of both versions are taken in, too.

        Args:
            seeds: Datasets of ``unlike``.
            moved: Groups of ``unlike``.
        """
        import numpy as np

        r = self._joined()
        found = np.zeros(len(self._strings.texts), bool)
        found[list(seeds)] = True
        if moved:
            # The order of those that moved and those that did not, which lie in other fragments, may have changed.
            groups = np.intersect1d(np.array(sorted(moved)), r.group[r.side == BOTH])
            found[list(self._datasets_of(np.flatnonzero(np.isin(r.group, groups))))] = True
        unstable = self._unstable()
        while True:
            before = int(found.sum())
            makers = found[r.target] & unstable[r.target]
            found[r.read_dataset[makers[r.read_row]]] = True
            if r.read_star.any():
                stars = r.read_star & found[r.read_dataset]
                found[r.target[r.read_row[stars]]] = True
            if int(found.sum()) == before:
                return {self._strings.texts[i] for i in np.flatnonzero(found).tolist()}

    def speaking(self, names: Collection[str]) -> dict[int, Any]:
        """The rows that decide some datasets as the whole does: places in each fragment that has any."""
        import numpy as np

        r = self._joined()
        wanted = np.zeros(len(self._strings.texts), bool)
        wanted[[self._strings.add(name) for name in names]] = True
        stars = r.read_star & wanted[r.target[r.read_row]]
        wanted[r.read_dataset[stars]] = True
        # Whether a statement that reads them stands is up to all that is said of what it makes.
        readers = np.zeros(len(wanted), bool)
        readers[r.target[r.read_row[wanted[r.read_dataset]]]] = True
        wanted |= readers & self._unstable()
        rows = np.zeros(len(r.side), bool)
        rows[r.read_row[wanted[r.read_dataset]]] = True
        rows |= wanted[r.target]
        chosen = np.flatnonzero(rows)
        cuts = np.flatnonzero(np.diff(r.fragment[chosen])) + 1
        return {int(r.fragment[part[0]]): r.place[part] for part in np.split(chosen, cuts) if len(part)}

    def _unstable(self) -> Any:
        """Datasets whose statements may not all be in effect: temporary, dropped, renamed, replaced within one file."""
        import numpy as np

        r = self._joined()
        found = np.zeros(len(self._strings.texts), bool)
        odd = (r.flags & _UNSTABLE) > 0
        found[r.target[odd]] = True
        found[r.read_dataset[odd[r.read_row]]] = True
        # The two versions are two, and each is right by itself.
        key = (r.group << 32) | r.target
        for side in (OLD, NEW):
            here = np.flatnonzero((r.side == side) | (r.side == BOTH))
            keys, inverse, counts = np.unique(key[here], return_inverse=True, return_counts=True)
            resets = np.zeros(len(keys), bool)
            resets[inverse[(r.flags[here] & _RESETS) > 0]] = True
            found[keys[resets & (counts > 1)] & 0xFFFFFFFF] = True
        return found

    def _datasets_of(self, rows: Any) -> set[int]:
        """Return the outputs and the inputs of rows."""
        import numpy as np

        r = self._joined()
        some = np.zeros(len(r.side), bool)
        some[rows] = True
        return {*np.unique(r.target[rows]).tolist(), *np.unique(r.read_dataset[some[r.read_row]]).tolist()}

    def _joined(self) -> _Rows:
        import numpy as np

        if self._rows is None:
            joined = {name: np.concatenate(parts) for name, parts in self._parts.items()}
            self._parts = {name: [values] for name, values in joined.items()}
            group = numbered(*(joined.pop(f"group_{name}") for name in ("source", "name", "session")))
            joined["target"] = joined["target"].astype(np.int64)
            self._rows = _Rows(group=group, **joined)
        return self._rows

    def _flags(self, text: dict[str, Any]) -> Any:
        import numpy as np

        add = self._strings.add
        mode = text["mode"]
        odd = (mode == add("drop")) | (mode == add("rename")) | (text["target_kind"] == add("temporary"))
        return np.where(mode == add("replace"), _RESETS, 0).astype(np.uint8) | np.where(odd, _UNSTABLE, 0).astype(
            np.uint8
        )

    def _reads(self, batch: Any, count: int) -> None:
        import numpy as np

        array = batch.column("edges")
        fields = fields_of(array.flatten())
        rows = np.repeat(np.arange(count, dtype=np.int64), np.diff(array.offsets.to_numpy()))
        star = self._text(fields["source_path"]) == self._strings.add(UNKNOWN)
        source = self._text(fields["source_dataset"]).astype(np.int64)
        pairs = np.unique((rows << 33) | (source << 1) | star)
        self._put("read_row", (pairs >> 33) + self._count)
        self._put("read_dataset", (pairs >> 1) & 0xFFFFFFFF)
        self._put("read_star", (pairs & 1).astype(bool))

    def _signatures(self, batch: Any, text: dict[str, Any]) -> Any:
        """Return the content of each row for the graph, and its statement; not its place, count or times."""
        import numpy as np

        complete = batch.column("columns_complete").to_numpy(zero_copy_only=False)
        columns, edges = batch.column("columns"), batch.column("edges")
        output, fields = fields_of(columns.flatten()), fields_of(edges.flatten())
        path, kind = self._text(output["path"]), self._text(output["type"])
        ends = {name: self._text(fields[name]).astype(np.int64) for name in _EDGES}
        arm = numbers_of(fields["arm"]).astype(np.int64)
        tag = numbers_of(fields["kind"]).astype(np.int64)
        for bit, name in ((8, "star"), (9, "masking")):
            tag |= fields[name].to_numpy(zero_copy_only=False).astype(np.int64) << bit
        signatures = np.stack(
            [
                (ends["source_dataset"] << 32) | ends["source_path"],
                (ends["target_path"] << 32) | ends["functions"],
                (ends["reason"] << 32) | (arm & 0xFFFFFFFF),
                tag,
            ],
            axis=1,
        )
        first, then = columns.offsets.to_numpy(), edges.offsets.to_numpy()
        heads = np.stack([*(text[name] for name in _SCALARS), complete, np.diff(first), np.diff(then)], axis=1)
        return _hashed(
            heads.astype(np.int32),
            (np.stack([path, kind], axis=1), first - first[0]),
            (signatures, then - then[0]),
        )

    def _text(self, array: Any) -> Any:
        return self._strings.numbers(array)

    def _put(self, name: str, values: Any) -> None:
        self._parts.setdefault(name, []).append(values)


def _hashed(heads: Any, *lists: tuple[Any, Any]) -> Any:
    """BLAKE2b of each row: of its head, and of its items in each list of items with offsets."""
    import numpy as np

    size = 8 * WORDS
    head = memoryview(heads.tobytes())
    width = len(head) // len(heads)
    parts = [
        (memoryview(items.tobytes()), (offsets.astype(np.int64) * (items.itemsize * items.shape[1])).tolist())
        for items, offsets in lists
    ]
    found = bytearray()
    for i in range(len(heads)):
        digest = hashlib.blake2b(head[i * width : (i + 1) * width], digest_size=size)
        for data, offsets in parts:
            digest.update(data[offsets[i] : offsets[i + 1]])
        found += digest.digest()
    return np.frombuffer(bytes(found), "<u8").reshape(-1, WORDS)


def _unequal(r: _Rows, old: Any, new: Any) -> tuple[Any, Any]:
    return unequal(r.signature[old], r.signature[new])


def _moved(r: _Rows, sides: Sequence[Any], texts: list[str]) -> tuple[Any, Any]:
    """The groups whose rows, the same on both sides, stand elsewhere; and those in which they follow in another order.

    Rows come in the order of their fragments, which is that of the index.
    """
    import numpy as np

    seen = np.array(sorted(np.unique(np.concatenate([r.seen[side] for side in sides])).tolist(), key=texts.__getitem__))
    rank = np.zeros(len(texts), np.int64)
    rank[seen.astype(np.int64)] = np.arange(len(seen))
    groups = int(r.group.max()) + 1 if len(r.group) else 0
    counts = [np.bincount(r.group[side], minlength=groups) for side in sides]
    even = counts[0] == counts[1]
    uneven = np.flatnonzero(~even)
    groups_of, places, orders = [], [], []
    for side in sides:
        rows = side[even[r.group[side]]]
        group, mark = r.group[rows], r.signature[rows]
        place = np.stack([rank[r.seen[rows]], r.line[rows]], axis=1).astype(np.uint64)
        by_mark = np.lexsort((place[:, 1], place[:, 0], mark[:, 1], mark[:, 0], group))
        groups_of.append(group[by_mark])
        places.append(np.concatenate([mark, place], axis=1)[by_mark])
        by_place = np.lexsort((place[:, 1], place[:, 0], group))
        group, place = group[by_place], place[by_place]
        same = (group[1:] == group[:-1]) & (place[1:] == place[:-1]).all(axis=1)
        later = np.concatenate([[True], ~same])[: len(rows), None]
        orders.append(np.concatenate([mark[by_place], later.astype(np.uint64)], axis=1))
    elsewhere, otherwise = (np.unique(groups_of[0][(a != b).any(axis=1)]) for a, b in (places, orders))
    return np.union1d(elsewhere, uneven), np.union1d(otherwise, uneven)
