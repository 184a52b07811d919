"""The derivations that a change of fragments concerns: removed, added, and all others that a build must look at.

What an index says of a dataset follows from the derivations that mention it. So a build over all that mention the
datasets which change says of these what a build over everything would. A dataset changes if a derivation that makes it
comes or goes, if its columns do, if what changes mentions it and a script ends generations of it
(``govtool.graph.builder.fold``), or if an unresolved ``*`` (``govtool.graph.builder.stars``) ties it to such a one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.graph.builder.columns import DTYPES, TEXTS
from govtool.graph.builder.gathered import Gathered
from govtool.graph.codes import HIDDEN
from govtool.graph.index import Index
from govtool.model.derivation import HIDDEN as UNKNOWN
from govtool.model.derivation import ROWS

_PARTS = "oegr"
"""The first letters of columns that a derivation has several items in."""


class TextNumbers:
    """Numbers of texts: of an index, and of new ones behind them.

    Args:
        index: The index.
        gathered: How many texts of it are sorted: those of the columns that it was built from.
    """

    def __init__(self, index: Index, gathered: int) -> None:
        self.index, self.sorted = index, gathered
        self.old = len(index.arrays["string"]) - 1
        self.new: list[str] = []
        self._numbers = {index.text(i): i for i in range(max(1, gathered), self.old)}

    def __len__(self) -> int:
        return self.old + len(self.new)

    def __getitem__(self, number: int) -> str:
        return self.index.text(number) if number < self.old else self.new[number - self.old]

    def know(self, numbers: Any) -> None:
        """Note texts of the index that are likely to be asked for."""
        self._numbers.update((self[number], number) for number in numbers.tolist() if number)

    def numbers(self, texts: Sequence[str]) -> Any:
        """The numbers of texts, of which the first stands for the absent one; those that the index lacks are new."""
        import numpy as np

        return np.array([0, *map(self.number, texts[1:])], np.int64)

    def number(self, text: str) -> int:
        """The number of a text; it is new if the index lacks it."""
        found = self._numbers.get(text)
        if found is None:
            found = 1 + bisect_left(range(1, self.sorted), text, key=self.index.text)
            if found >= self.sorted or self.index.text(found) != text:
                found = len(self)
                self.new.append(text)
            self._numbers[text] = found
        return found


@dataclass(frozen=True, slots=True)
class Derivations:
    """Columns of derivations (``govtool.graph.builder.columns.DTYPES``), with the numbers of a ``TextNumbers``."""

    columns: Mapping[str, Any]

    def of(self, numbers: Any) -> Derivations:
        """Some of them, in the order of their numbers."""
        import numpy as np

        from govtool.arrays.csr import spread

        found: dict[str, Any] = {}
        for name, values in self.columns.items():
            if name.startswith("d."):
                found[name] = values[numbers].astype(DTYPES[name])
        for part in _PARTS:
            owner = self.columns[f"{part}.derivation"]
            wanted = np.asarray(numbers).astype(owner.dtype)
            places, whose = spread(np.searchsorted(owner, wanted), np.searchsorted(owner, wanted, "right"))
            for name, values in self.columns.items():
                if name.startswith(f"{part}."):
                    found[name] = values[places].astype(DTYPES[name])
            found[f"{part}.derivation"] = whose.astype(np.int32)
        return Derivations(found)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.columns["d.target"])

    def joined(self, other: Derivations) -> Derivations:
        """These and others behind them."""
        import numpy as np

        return Derivations(
            {
                name: np.concatenate(
                    [values, other.columns[name] + (self.count if name.endswith(".derivation") else 0)]
                ).astype(DTYPES[name])
                for name, values in self.columns.items()
            }
        )

    def contents(self) -> list[bytes]:
        """All that each of them says."""
        import numpy as np

        c = self.columns
        heads = np.stack([c[name].astype(np.int64) for name in c if name.startswith("d.")], axis=1)
        found = [row.tobytes() for row in heads]
        for part in _PARTS:
            names = [name for name in c if name.startswith(f"{part}.") and name != f"{part}.derivation"]
            rows = np.stack([c[name].astype(np.int64) for name in names], axis=1)
            bounds = np.searchsorted(c[f"{part}.derivation"], np.arange(self.count + 1)).tolist()
            for one in range(self.count):
                found[one] += b"|" + rows[bounds[one] : bounds[one + 1]].tobytes()
        return found


@dataclass(frozen=True, slots=True)
class ChangedDerivations:
    """What a change concerns. Derivations before it are named by their old numbers."""

    texts: TextNumbers
    removed: Any
    """Those that are gone."""
    context: Any
    """Those that stay and must be looked at."""
    looked_at: Derivations
    """The ones that come, and the context, in the order of the new index."""
    before: Any
    """Per derivation that is looked at its old number; of a new one, that of what it comes before."""
    is_new: Any
    datasets: Any
    """bool[texts]: the names of the datasets that are looked at as a whole."""


def change_of(
    index: Index, kept: Gathered, fresh: Gathered, fragments: Sequence[str], most: int
) -> ChangedDerivations | None:
    """Find what a change concerns; None if it is more than ``most`` edges, or not to be told apart.

    Args:
        index: The index before.
        kept: The columns that it was built from; their texts are those of the index.
        fresh: The columns of the fragments that came.
        fragments: The names of all fragments, in the order of the new index.
        most: Edges.
    """
    import numpy as np

    texts = TextNumbers(index, len(kept.texts))
    old = Derivations(kept.columns)
    stay = set(kept.fragments) & set(fragments)
    if len(set(fragments)) < len(fragments) or [n for n in fragments if n in stay] != [
        n for n in kept.fragments if n in stay
    ]:
        return None
    gone, gone_gap, ends = _lying_between(kept, stay, kept.fragments)
    come, come_gap, _ = _lying_between(fresh, stay, fragments)
    left = old.of(gone)
    used = np.zeros(texts.old, bool)
    for name in TEXTS:
        used[left.columns[name]] = True
    texts.know(np.flatnonzero(used))
    ranks = texts.numbers(fresh.texts)
    arrived = Derivations(
        {name: ranks[values] if name in TEXTS else values for name, values in fresh.columns.items()}
    ).of(come)
    pairs = _common(left.contents(), gone_gap, arrived.contents(), come_gap)
    same_old, same_new = {one for one, _ in pairs}, {new: old for old, new in pairs}
    removed = np.array([number for place, number in enumerate(gone.tolist()) if place not in same_old], np.int64)
    before, added, following, gap = [], [], 0, -1
    for place in range(len(come) - 1, -1, -1):
        if come_gap[place] != gap:
            gap = come_gap[place]
            following = ends[gap]
        if place in same_new:
            following = int(gone[same_new[place]])
        else:
            added.append(place)
            before.append(following)
    new = arrived.of(np.array(added[::-1], np.int64))
    return _closed(index, texts, old, removed, new, np.array(before[::-1], np.int64), most)


def _lying_between(some: Gathered, stay: set[str], order: Sequence[str]) -> tuple[Any, list[int], list[int]]:
    """The derivations of fragments that do not stay; per one how many that stay come before it; where each of these,
    and the end, begins.
    """
    import numpy as np

    places = {name: place for place, name in enumerate(some.fragments)}
    found: list[int] = []
    gaps: list[int] = []
    ends: list[int] = []
    for name in order:
        place = places.get(name, -1)
        if name in stay:
            ends.append(some.starts[place] if place >= 0 else 0)
        elif place >= 0:
            span = range(some.starts[place], some.starts[place + 1])
            found += span
            gaps += [len(ends)] * len(span)
    return np.array(found, np.int64), gaps, [*ends, some.derivations]


def _common(one: list[bytes], gaps: list[int], other: list[bytes], other_gaps: list[int]) -> list[tuple[int, int]]:
    """The longest rising sequence of equal things that occur once on either side and lie in the same gap."""
    places: list[dict[tuple[int, bytes], int]] = []
    for contents, where in ((one, gaps), (other, other_gaps)):
        seen: dict[tuple[int, bytes], int] = {}
        for place, key in enumerate(zip(where, contents, strict=True)):
            seen[key] = -1 if key in seen else place
        places.append({key: place for key, place in seen.items() if place >= 0})
    pairs = [(place, places[1][key]) for key, place in places[0].items() if key in places[1]]
    ends: list[int] = []
    last: list[int] = []
    previous = [-1] * len(pairs)
    for number, (_, goal) in enumerate(pairs):
        at = bisect_left(ends, goal)
        if at == len(ends):
            ends.append(goal)
            last.append(number)
        else:
            ends[at], last[at] = goal, number
        previous[number] = last[at - 1] if at else -1
    found, number = [], last[-1] if last else -1
    while number >= 0:
        found.append(pairs[number])
        number = previous[number]
    return found[::-1]


def _closed(
    index: Index, texts: TextNumbers, old: Derivations, removed: Any, new: Derivations, before: Any, most: int
) -> ChangedDerivations | None:
    """All that must be looked at, by the rules that the module states."""
    import numpy as np

    from govtool.arrays.sets import marked_places

    left = old.of(removed)
    if _has_wildcard(index, texts):
        return None
    unknown = texts.number(UNKNOWN)
    scripted = _scripted(texts, old, new)
    c = old.columns
    datasets = np.zeros(len(texts), bool)
    for some in (new, left):
        datasets[some.columns["d.target"]] = True
    gone = np.zeros(old.count + 1, bool)
    gone[removed] = True
    counts = ~gone[:-1] & ~scripted[c["d.target"]]
    changed = _changed_sources(index, texts, old, (new, left), counts, datasets)
    datasets[np.array(sorted(changed), np.int64)] = True
    while True:
        mark = datasets[c["d.target"]]
        for part, name in (("e", "source_dataset"), ("r", "dataset")):
            mark[c[f"{part}.derivation"][marked_places(datasets, c[f"{part}.{name}"])]] = True
        context = np.flatnonzero(mark & ~gone[:-1])
        beside = old.of(context) if _edges_of(c, context) <= most else None
        if beside is None:
            return None
        further = np.zeros(len(texts), bool)
        for some in (beside, new, left):
            e = some.columns
            for name in ("d.target", "e.source_dataset", "r.dataset"):
                further[e[name]] = True
        further &= scripted
        for some in (beside, new, left):
            # Whether they count may change, and with it whether what they mention is mentioned.
            some = some.of(np.flatnonzero(scripted[some.columns["d.target"]]))
            for name in ("e.source_dataset", "r.dataset"):
                further[some.columns[name]] = True
        for some in (beside, new):
            e = some.columns
            stars = np.flatnonzero((e["e.source_path"] == unknown) & (e["e.target_path"] == unknown))
            further[e["e.source_dataset"][stars]] = True
            further[e["d.target"][e["e.derivation"][stars]]] = True
        if not (further & ~datasets).any():
            break
        datasets |= further
    place = np.concatenate([context, before])
    is_new = np.arange(len(place)) >= len(context)
    order = np.lexsort((np.arange(len(place)), ~is_new, place))
    looked_at = beside.joined(new).of(order)
    return ChangedDerivations(texts, removed, context, looked_at, place[order], is_new[order], datasets)


def _scripted(texts: TextNumbers, old: Derivations, new: Derivations) -> Any:
    """The datasets of which scripts may end generations, before the change or after it: bool[texts]."""
    import numpy as np

    words = ("replace", "drop", "rename", "temporary", "select")
    replace, drop, rename, temporary, select = map(texts.number, words)
    names = ("target", "session", "file", "mode", "target_kind", "kind")
    target, session, file, mode, target_kind, kind = (
        np.concatenate([each.columns[f"d.{name}"].astype(np.int64) for each in (old, new)]) for name in names
    )
    found = np.zeros(len(texts), bool)
    found[target[(mode == drop) | (mode == rename) | (target_kind == temporary)]] = True
    group = np.where(session > 0, session, file) * 2 + (session > 0)
    key = group * len(texts) + target
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order][1:] == key[order][:-1])
    several = np.concatenate([order[again], order[again + 1]])
    found[target[several[(mode[several] == replace) & (kind[several] != select)]]] = True
    for each in (old, new):
        away = each.of(np.flatnonzero(each.columns["d.mode"] == rename))
        found[away.columns["e.source_dataset"]] = True
    return found


def _edges_of(columns: Mapping[str, Any], numbers: Any) -> int:
    import numpy as np

    owner = columns["e.derivation"]
    wanted = numbers.astype(owner.dtype)
    return int((np.searchsorted(owner, wanted, "right") - np.searchsorted(owner, wanted)).sum())


def _has_wildcard(index: Index, texts: TextNumbers) -> bool:
    """Return whether a name may be one of BigQuery's wildcards; see ``govtool.graph.builder.shards``."""
    import numpy as np

    ends, text = np.asarray(index.arrays["string"])[1:].astype(np.int64), np.asarray(index.arrays["text"])
    ends = ends[ends > 1]
    star, quote = (ord(letter) for letter in '*"')
    found = bool(((text[ends - 1] == quote) & (text[ends - 2] == star)).any()) if len(ends) else False
    return found or any(one.endswith('*"') for one in texts.new)


def _changed_sources(
    index: Index,
    texts: TextNumbers,
    old: Derivations,
    parts: tuple[Derivations, Derivations],
    counts: Any,
    targets: Any,
) -> set[int]:
    """The datasets that are only read, and whose columns change: one is new, or nothing else names one any more.

    Args:
        index: The index before.
        texts: Its texts and those that come.
        old: The derivations before.
        parts: Those that come and those that go.
        counts: bool[old]: those that stay, and count for certain.
        targets: bool[texts]: the datasets that derivations which come or go make.
    """
    come, gone = map(_mentions, parts)
    found: set[int] = set()
    for dataset, path in sorted(come):
        number = None if targets[dataset] or dataset in found else index.find_dataset(texts[dataset])
        if number is None or index.dataset_flags[number] & HIDDEN or index.find_column(number, texts[path]) is None:
            found.add(dataset)
    left = {pair for pair in gone - come if not targets[pair[0]] and pair[0] not in found}
    return found | {dataset for dataset, _ in left - _named(texts, old, counts, {dataset for dataset, _ in left})}


def _mentions(some: Derivations) -> set[tuple[int, int]]:
    c = some.columns
    found = set(zip(c["e.source_dataset"].tolist(), c["e.source_path"].tolist(), strict=True))
    return found | set(zip(c["r.dataset"].tolist(), c["r.path"].tolist(), strict=True))


def _named(texts: TextNumbers, old: Derivations, counts: Any, datasets: set[int]) -> set[tuple[int, int]]:
    """The columns of some datasets that derivations name, of those that count; edges that stand for a ``*`` do not."""
    import numpy as np

    from govtool.arrays.sets import marked_places

    c = old.columns
    marks = np.zeros(len(texts), bool)
    marks[np.array(sorted(datasets), np.int64)] = True
    found: set[tuple[int, int]] = set()
    rows = texts.number(ROWS)
    for part, dataset, path in (("e", "source_dataset", "source_path"), ("r", "dataset", "path")):
        places = marked_places(marks, c[f"{part}.{dataset}"])
        places = places[counts[c[f"{part}.derivation"][places]]]
        found |= set(zip(c[f"{part}.{dataset}"][places].tolist(), c[f"{part}.{path}"][places].tolist(), strict=True))
    makers = old.of(np.flatnonzero(marks[c["d.target"]] & counts)).columns
    for part, path in (("e", "target_path"), ("o", "path")):
        owner = makers["d.target"][makers[f"{part}.derivation"]]
        found |= set(zip(owner.tolist(), makers[f"{part}.{path}"].tolist(), strict=True))
    return found | {(dataset, rows) for dataset in {*makers["d.target"].tolist(), *(one for one, _ in found)}}
