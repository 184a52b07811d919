"""Changes of a dataset in the course of a file's or session's statements: replaced, dropped, renamed.

Text order counts within one file or one session only; across them, what is said of a dataset are alternatives. Within
one, a dataset lives through generations: a ``replace`` on a later line and a ``drop`` end one. A generation that is
gone but was read meanwhile becomes a dataset of its own that answers pass through (a scratch table of a script); one
that nobody read vanishes. Of a dataset that has no other mention, the last ended generation keeps the number. A
``rename`` ends its source like a drop. A dropped dataset that nothing else speaks of is hidden. A temporary table is
its script's own, whatever others call by its name. Statements on the same line are alternatives, which is what the
branches of a template come out as. What makes nothing stands for the columns that it names, such as those of a
view that is replaced further down: it neither begins a generation nor ends with one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from govtool.graph.codes import DECLARE, DROP, RENAME, REPLACE

KEEPS, REFILLS, REMAKES = range(3)
"""The extent of a ``replace``: nothing (a SELECT named by its file), the content (INSERT OVERWRITE), or columns too."""


@dataclass(frozen=True, slots=True)
class FoldedGraph:
    """The outcome. Datasets from ``datasets`` on are ended generations; ``origin[i]`` is what ``datasets + i`` was."""

    alive: Any
    """bool[derivations]"""
    target: Any
    """int64[derivations]: the dataset, or ended generation, that each derivation makes."""
    source: Any
    """int64[edges]: the dataset, or ended generation, that each edge reads."""
    origin: list[int]
    dropped: frozenset[int]
    """Datasets that are no more; those that were read before are passed through."""


@dataclass(slots=True)
class _Generation:
    makers: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)


def fold(
    target: Any,
    mode: Any,
    group: Any,
    time: Any,
    resets: Any,
    temporary: Any,
    makes: Any,
    edge_derivation: Any,
    edge_source: Any,
    datasets: int,
) -> FoldedGraph:
    """Fold derivations group by group.

    Args:
        target: int64[derivations], dataset.
        mode: uint8[derivations], code of ``MODES``.
        group: int64[derivations], the file or session that said it.
        time: int64[derivations], a number that grows with the place in the group; equal means the same line.
        resets: uint8[derivations], what a ``replace`` ends of what was before, ``KEEPS``, ``REFILLS`` or ``REMAKES``.
        temporary: bool[derivations].
        makes: bool[derivations], false for what stands only for the columns that it names.
        edge_derivation: int64[edges].
        edge_source: int64[edges], dataset.
        datasets: Number of datasets.
    """
    import numpy as np

    alive = mode != DROP
    key = group * datasets + target
    wanted = _candidates(key, mode, resets, temporary)
    renames = np.flatnonzero(mode == RENAME)
    away: dict[int, set[int]] = defaultdict(set)
    if len(renames):
        chosen = np.flatnonzero(np.isin(edge_derivation, renames) & (edge_source != target[edge_derivation]))
        for d, s in zip(edge_derivation[chosen].tolist(), edge_source[chosen].tolist(), strict=True):
            away[int(group[d]) * datasets + s].add(d)
        wanted = np.union1d(wanted, np.fromiter(away, dtype=np.int64))
    folded = FoldedGraph(
        alive, target.copy(), edge_source, [], frozenset(_never(target, alive, makes, edge_source, datasets))
    )
    if not len(wanted):
        return folded

    edge_key = group[edge_derivation] * datasets + edge_source
    reads = np.flatnonzero(np.isin(edge_key, wanted))
    readers: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for e, k, d in zip(reads.tolist(), edge_key[reads].tolist(), edge_derivation[reads].tolist(), strict=True):
        readers[k][d].append(e)
    makers: dict[int, list[int]] = defaultdict(list)
    for d in np.flatnonzero(np.isin(key, wanted) & makes).tolist():
        makers[int(key[d])].append(d)
    mentions = np.bincount(target[alive & makes], minlength=datasets) + np.bincount(edge_source, minlength=datasets)

    source = edge_source.copy()
    dropped = set(folded.dropped)
    for k in sorted(set(makers) | set(away)):
        dataset = k % datasets
        generations = _generations(makers[k], readers[k], away.get(k, set()), mode, time, resets)
        mine = sum(len(g.makers) + sum(len(readers[k][d]) for d in g.readers) for g in generations)
        shared = mentions[dataset] != mine
        ended = generations[:-1]
        if generations[-1].makers and shared and temporary[generations[-1].makers].all():
            ended = generations
        elif not generations[-1].makers and ended and not shared:
            # Nobody else speaks of it: the last generation keeps the name, and the dataset is passed through.
            dropped.add(dataset)
            ended = generations[:-2]
            if not generations[-2].readers:
                alive[generations[-2].makers] = False
        for generation in ended:
            if not generation.readers:
                alive[generation.makers] = False
                continue
            number = datasets + len(folded.origin)
            folded.origin.append(dataset)
            folded.target[generation.makers] = number
            for d in generation.readers:
                source[readers[k][d]] = number
    speaks = alive & makes
    ended_only = _without_mention(wanted % datasets, folded.target[speaks], source[alive[edge_derivation]], datasets)
    number_of, origin = _kept_numbers(ended_only, folded.origin, datasets)
    return FoldedGraph(alive, number_of[folded.target], number_of[source], origin, frozenset(dropped | ended_only))


def _without_mention(looked_at: Any, target: Any, source: Any, datasets: int) -> set[int]:
    """The datasets, of those that were looked at, that nothing makes or reads any more."""
    import numpy as np

    left = np.bincount(target, minlength=datasets)[:datasets] + np.bincount(source, minlength=datasets)[:datasets]
    found = np.unique(looked_at)
    return set(found[left[found] == 0].tolist())


def _kept_numbers(ended_only: set[int], origin: list[int], datasets: int) -> tuple[Any, list[int]]:
    """Give the last ended generation of a dataset without other mention the dataset's own number.

    Returns:
        The new number of each dataset and ended generation, and what the ended generations that remain were.
    """
    import numpy as np

    last = {dataset: i for i, dataset in enumerate(origin) if dataset in ended_only}
    kept = set(last.values())
    number_of = np.arange(datasets + len(origin))
    remaining = [i for i in range(len(origin)) if i not in kept]
    number_of[[datasets + i for i in remaining]] = datasets + np.arange(len(remaining))
    for dataset, i in last.items():
        number_of[datasets + i] = dataset
    return number_of, [origin[i] for i in remaining]


def _candidates(key: Any, mode: Any, resets: Any, temporary: Any) -> Any:
    """The (group, dataset) keys that need a look: said more than once with a reset among it, or not to stay."""
    import numpy as np

    keys, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    some = np.zeros(len(keys), bool)
    some[inverse[((mode == REPLACE) & (resets != KEEPS)) | (mode == RENAME)]] = True
    some &= counts > 1
    some[inverse[(mode == DROP) | temporary]] = True
    return keys[some]


def _never(target: Any, alive: Any, makes: Any, source: Any, datasets: int) -> list[int]:
    """Datasets of which only drops speak."""
    import numpy as np

    mentions = np.bincount(target[alive & makes], minlength=datasets) + np.bincount(source, minlength=datasets)
    only: list[int] = np.setdiff1d(target[~alive], np.flatnonzero(mentions)).tolist()
    return only


def _generations(
    makers: list[int], readers: dict[int, list[int]], away: set[int], mode: Any, time: Any, resets: Any
) -> list[_Generation]:
    """Play one file's statements about one dataset; the last generation is what stands (empty: dropped)."""
    order = sorted({*makers, *readers, *away}, key=lambda d: (int(time[d]), d))
    made = set(makers)
    generations = [_Generation()]
    for d in order:
        current = generations[-1]
        if d in readers and current.makers:
            current.readers.append(d)
        if d in made:
            code = int(mode[d])
            replaces = (code == REPLACE and resets[d] != KEEPS) or code == RENAME
            if code == DROP:
                if current.makers:
                    generations.append(_Generation())
                continue
            # Statements on one line are alternatives (branches of a template): only earlier lines are replaced.
            if replaces and current.makers and any(time[m] < time[d] for m in current.makers):
                declared = [m for m in current.makers if mode[m] == DECLARE and resets[d] == REFILLS]
                current.makers = [m for m in current.makers if m not in declared]
                generations.append(_Generation(declared))
            generations[-1].makers.append(d)
        elif d in away and current.makers:
            generations.append(_Generation())
    return generations
