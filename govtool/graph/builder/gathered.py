"""The derivations of many fragments as columns: what an index is built from, and what the next one is derived from.

Strings are numbered in the order of their texts, so that the columns of the same fragments are the same however they
came together: read one by one, a hundred small ones as one table, or taken from the columns of an earlier commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from govtool.arrays import layout
from govtool.graph.builder.columns import DTYPES, TEXTS, ColumnCollector

FORMAT = 3
"""Version of the packed form, and of what the columns mean."""

_TOGETHER = 1 << 22
"""Bytes of tables that are taken in as one: a hundred small ones cost little more than one of them."""


class Gathered(NamedTuple):
    """Columns of derivations, fragment after fragment."""

    texts: list[str]
    """Strings by their ids, sorted, but for the first one, which stands for the absent one."""
    columns: dict[str, Any]
    """See ``govtool.graph.builder.columns.DTYPES``."""
    fragments: tuple[str, ...]
    """The names of the fragments, in order."""
    starts: tuple[int, ...]
    """The first derivation of each fragment, and at last the number of derivations."""

    @property
    def derivations(self) -> int:
        """The number of derivations."""
        return self.starts[-1]


def gather(tables: Iterable[tuple[str, Any]], taken: Callable[[int, float], None] | None = None) -> Gathered:
    """Take in tables of ``govtool.model.columnar``.

    Args:
        tables: The name and the table of each fragment.
        taken: Called with the number of a table, and the share of it that is in, and all before it.
    """
    collector = ColumnCollector()
    names: list[str] = []
    starts = [0]
    for together in _together(tables):
        for name, table in together:
            names.append(name)
            starts.append(starts[-1] + table.num_rows)
        for share in collector.batches(_one([table for _, table in together])):
            if taken:
                done = len(names) - (1 - share) * len(together)
                number = min(int(done), len(names) - 1)
                taken(number, done - number)
    return _sorted(Gathered(collector.strings.texts, collector.columns(), tuple(names), tuple(starts)))


def with_table(gathered: Gathered, table: Any) -> Gathered:
    """The same derivations and those of one more table, which is no fragment."""
    return joined((gathered, gather([("", table)])), (*gathered.fragments, ""))


def joined(parts: Sequence[Gathered], fragments: Sequence[str]) -> Gathered:
    """The named fragments, in this order, each from the first part that has it.

    Raises:
        KeyError: No part has one of them.
    """
    import numpy as np

    stretches = list(_stretches(parts, fragments))
    used = [np.zeros(len(part.texts), bool) for part in parts]
    for stretch in stretches:
        for name in TEXTS:
            used[stretch.part][stretch.of(parts, name)] = True
    texts = ["", *sorted(set(chain.from_iterable(map(_chosen, parts, used))))]
    numbers = {text: number for number, text in enumerate(texts) if number}
    ranks = [np.array([0, *(numbers.get(text, 0) for text in part.texts[1:])], np.int32) for part in parts]
    columns: dict[str, Any] = {}
    for name, dtype in DTYPES.items():
        pieces = [np.empty(0, dtype)]
        for stretch in stretches:
            piece = stretch.of(parts, name)
            if name in TEXTS:
                piece = ranks[stretch.part][piece]
            elif name.endswith(".derivation"):
                piece = piece + (stretch.begins - stretch.first)
            pieces.append(piece)
        columns[name] = np.concatenate(pieces)
    ends = [stretch.ends(parts, place) for stretch in stretches for place in stretch.fragments]
    return Gathered(texts, columns, tuple(fragments), (0, *ends))


def ordered(gathered: Gathered) -> Gathered:
    """The same with its fragments in the order of an index: by what their first derivations are, and by name.

    A fragment that was written anew for a small change so keeps its place, and what follows from it its numbers.
    """
    import numpy as np

    order = fragment_order(gathered.fragments, [first_derivation(gathered, n) for n in range(len(gathered.fragments))])
    if order == list(range(len(order))):
        return gathered
    counts = np.diff(gathered.starts)
    starts = np.concatenate([[0], np.cumsum(counts[order])])
    columns = gathered.columns
    for part in "oegr":
        owner = columns[f"{part}.derivation"]
        bounds = owner.searchsorted(np.array(gathered.starts))
        shifts = {place: starts[at] - gathered.starts[place] for at, place in enumerate(order)}
        for name in [name for name in columns if name.startswith(f"{part}.")]:
            moved = name == f"{part}.derivation"
            columns[name] = np.concatenate(
                [columns[name][bounds[n] : bounds[n + 1]] + (shifts[n] if moved else 0) for n in order]
            ).astype(DTYPES[name])
    for name in [name for name in columns if name.startswith("d.")]:
        columns[name] = np.concatenate([columns[name][gathered.starts[n] : gathered.starts[n + 1]] for n in order])
    return gathered._replace(fragments=tuple(gathered.fragments[n] for n in order), starts=tuple(starts.tolist()))


First = tuple[str | int, ...]
"""What a fragment is ordered by."""


def first_derivation(gathered: Gathered, place: int, text: Callable[[int], str] | None = None) -> First:
    """What a fragment is ordered by; one without derivations comes first.

    Args:
        gathered: The columns.
        place: The place of the fragment.
        text: Gives the texts that the columns number, if `gathered` does not.
    """
    start = gathered.starts[place]
    if start == gathered.starts[place + 1]:
        return ()
    words = text or gathered.texts.__getitem__
    where = [words(int(gathered.columns[f"d.{name}"][start])) for name in ("source", "session", "file", "first_seen")]
    what = [words(int(gathered.columns[f"d.{name}"][start])) for name in ("fingerprint", "target")]
    return (*where, int(gathered.columns["d.line"][start]), *what)


def fragment_order(names: Sequence[str], firsts: Sequence[First]) -> list[int]:
    """The order of fragments by their first derivations."""
    return sorted(range(len(names)), key=lambda n: (firsts[n], names[n]))


def pack(gathered: Gathered) -> Iterator[Any]:
    """Yield the packed form, piece by piece: a file of ``govtool.arrays.layout``."""
    import numpy as np

    encoded = [text.encode("utf-8", "replace") for text in gathered.texts]
    arrays = {
        **gathered.columns,
        "starts": np.array(gathered.starts, np.int64),
        "string": np.concatenate([[0], np.cumsum([len(text) for text in encoded])]),
        "text": np.frombuffer(b"".join(encoded), np.uint8),
    }
    return layout.pack(layout.narrowed(arrays), {"fragments": list(gathered.fragments)}, FORMAT)


def unpack(buffer: Any) -> Gathered:
    """Read the packed form back; all of it is compared with its checksums.

    Raises:
        IntegrityError: The buffer is damaged.
        FormatError: It is of another version.
    """
    import numpy as np

    layout.verify(buffer, FORMAT)
    arrays, meta = layout.view(buffer, FORMAT)
    found = {name: np.frombuffer(array, f"<u{array.itemsize}") for name, array in arrays.items()}
    columns = {name: found[name].astype(dtype) for name, dtype in DTYPES.items()}
    ends = found["string"].tolist()
    whole = found["text"].tobytes()
    texts = [whole[low:high].decode() for low, high in pairwise(ends)]
    return Gathered(texts, columns, tuple(meta["fragments"]), tuple(found["starts"].tolist()))


def mapped(buffer: Any) -> Gathered:
    """The packed form as it lies there: nothing is copied or compared. Of the texts only their number is there.

    Raises:
        IntegrityError: The header is damaged.
        FormatError: It is of another version.
    """
    import numpy as np

    arrays, meta = layout.view(buffer, FORMAT)
    columns = {name: np.asarray(arrays[name]) for name in DTYPES}
    texts = [""] * (len(arrays["string"]) - 1)
    return Gathered(texts, columns, tuple(meta["fragments"]), tuple(arrays["starts"].tolist()))


def fragments_of(buffer: Any) -> list[str]:
    """The names of the fragments in a packed form; nothing but its header is read.

    Raises:
        IntegrityError: The header is damaged.
        FormatError: It is of another version.
    """
    names: list[str] = layout.view(buffer, FORMAT)[1]["fragments"]
    return names


class _Stretch(NamedTuple):
    """Fragments that follow each other in a part, and in what is made of it."""

    part: int
    fragments: range
    """Their places in the part."""
    first: int
    """Their first derivation in the part."""
    after: int
    """The first one there that is no longer theirs."""
    begins: int
    """Their first derivation in what is made."""

    def of(self, parts: Sequence[Gathered], name: str) -> Any:
        """Their stretch of a column."""
        column = parts[self.part].columns[name]
        if name.startswith("d."):
            return column[self.first : self.after]
        owner = parts[self.part].columns[f"{name[0]}.derivation"]
        low, high = owner.searchsorted((self.first, self.after))
        return column[low:high]

    def ends(self, parts: Sequence[Gathered], place: int) -> int:
        """Where the derivations of one of them end in what is made."""
        return parts[self.part].starts[place + 1] - self.first + self.begins


def _stretches(parts: Sequence[Gathered], fragments: Sequence[str]) -> Iterator[_Stretch]:
    places: dict[str, tuple[int, int]] = {}
    for number, part in enumerate(parts):
        for place, name in enumerate(part.fragments):
            places.setdefault(name, (number, place))
    begins = at = 0
    while at < len(fragments):
        number, place = places[fragments[at]]
        high = place + 1
        at += 1
        while at < len(fragments) and places[fragments[at]] == (number, high):
            at, high = at + 1, high + 1
        starts = parts[number].starts
        yield _Stretch(number, range(place, high), starts[place], starts[high], begins)
        begins += starts[high] - starts[place]


def _chosen(part: Gathered, used: Any) -> Iterator[str]:
    """The texts of a part whose numbers are used, but for the absent one."""
    return (part.texts[number] for number in used.nonzero()[0].tolist() if number)


def _sorted(gathered: Gathered) -> Gathered:
    """The same with its strings numbered in the order of their texts."""
    import numpy as np

    texts = gathered.texts
    order = sorted(range(1, len(texts)), key=texts.__getitem__)
    rank = np.zeros(len(texts), np.int32)
    rank[order] = np.arange(1, len(texts), dtype=np.int32)
    for name in TEXTS:  # one at a time: of tens of millions of edges there is no room for two of each
        gathered.columns[name] = rank[gathered.columns[name]]
    return gathered._replace(texts=["", *(texts[number] for number in order)])


def _together(tables: Iterable[tuple[str, Any]]) -> Iterator[list[tuple[str, Any]]]:
    """Tables of one layout that follow each other, as many as may be taken in as one."""
    found: list[tuple[str, Any]] = []
    size = 0
    for name, table in tables:
        if found and (size + table.nbytes > _TOGETHER or table.schema != found[0][1].schema):
            yield found
            found, size = [], 0
        found.append((name, table))
        size += table.nbytes
    if found:
        yield found


def _one(tables: Sequence[Any]) -> Any:
    import pyarrow as pa

    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()
