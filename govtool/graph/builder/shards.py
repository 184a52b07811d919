"""Links of BigQuery's wildcard tables (``ds.events_*``) to their shards, of whatever ingest source.

A statement that reads a wildcard reads every table whose name begins so. Within one ingest the extractor knows these
tables; of tables that other sources name only the whole graph knows. So each shard fills the wildcard, column by
column, by the evidence of the first statement that names the wildcard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from govtool.graph.builder.gathered import Gathered
from govtool.model.derivation import HIDDEN, ROWS, ColumnRef, Derivation, Edge, OutputColumn, Statement
from govtool.model.kinds import EdgeKind
from govtool.names import split_name

WILDCARD_END: Final = '*"'
"""The end of a wildcard's name."""
_DIALECT: Final = "bigquery"


@dataclass(frozen=True, slots=True)
class _Wildcard:
    """A wildcard, and the number of the first derivation that reads it."""

    name: str
    reader: int

    @property
    def parent(self) -> list[str]:
        return split_name(self.name)[:-1]

    @property
    def prefix(self) -> str:
        return split_name(self.name)[-1].strip('"').rstrip("*")


def shard_links(gathered: Gathered) -> list[Derivation]:
    """Return a derivation for each shard of each wildcard that a statement reads; usually none."""
    if not any(text.endswith(WILDCARD_END) for text in gathered.texts):
        return []
    tables = _Tables(gathered)
    return [link for wildcard in tables.wildcards() for link in _links(tables, wildcard)]


class _Tables:
    """The datasets of a graph to be, by name."""

    def __init__(self, gathered: Gathered) -> None:
        self.texts = gathered.texts
        self.columns = gathered.columns

    @cached_property
    def names(self) -> list[str]:
        """The names of all datasets, sorted."""
        import numpy as np

        c = self.columns
        found = np.unique(np.concatenate([c["d.target"], c["e.source_dataset"], c["r.dataset"]]))
        return sorted(self.texts[i] for i in found.tolist())

    def wildcards(self) -> Iterator[_Wildcard]:
        """The wildcards that statements of BigQuery read, by name."""
        import numpy as np

        c = self.columns
        for number, text in sorted(enumerate(self.texts), key=lambda item: item[1]):
            if not text.endswith(WILDCARD_END) or len(split_name(text)) < 2:  # a file, such as "s3://b/*"
                continue
            readers = np.unique(c["e.derivation"][c["e.source_dataset"] == number]).tolist()
            readers = [one for one in readers if self.texts[c["d.dialect"][one]] == _DIALECT]
            if readers:
                yield _Wildcard(text, min(readers, key=self._place))

    def stars_over(self, wildcard: str) -> list[int]:
        """Return the derivations that a ``*`` over a wildcard brought columns of the shards which their ingest knew."""
        import numpy as np

        c = self.columns
        numbers = [i for i, text in enumerate(self.texts) if text == wildcard]
        at = np.isin(c["e.source_dataset"], np.array(numbers, np.int64)) & (c["e.star"] != 0)
        found: list[int] = np.unique(c["e.derivation"][at]).tolist()
        return found

    def _place(self, derivation: int) -> tuple[str, str, int]:
        text, c = self.texts, self.columns
        return text[c["d.source"][derivation]], text[c["d.file"][derivation]], int(c["d.line"][derivation])

    def statement(self, derivation: int) -> Statement:
        """Return the evidence of a derivation, as that of a link."""
        text, c = self.texts, self.columns

        def field(name: str) -> str:
            found: str = text[c[f"d.{name}"][derivation]]
            return found

        return Statement(
            fingerprint=field("fingerprint"),
            kind="wildcard",
            dialect=field("dialect"),
            file=field("file"),
            line=int(c["d.line"][derivation]),
            source=field("source"),
            how=field("how"),
            session=field("session") or None,
            text=field("text"),
        )

    def paths(self, names: Iterable[str]) -> dict[str, set[str]]:
        """Return the columns of some datasets that anything names, with ``ROWS`` and ``HIDDEN``."""
        import numpy as np

        c = self.columns
        wanted = set(names)
        numbers = np.array([i for i, text in enumerate(self.texts) if text in wanted], np.int64)
        found: dict[str, set[str]] = defaultdict(set)
        outputs = c["d.target"][c["o.derivation"]] if len(c["o.derivation"]) else c["o.derivation"]
        pairs = ((c["e.source_dataset"], c["e.source_path"]), (c["r.dataset"], c["r.path"]), (outputs, c["o.path"]))
        for dataset, path in pairs:
            at = np.flatnonzero(np.isin(dataset, numbers))
            for one, column in zip(dataset[at].tolist(), path[at].tolist(), strict=True):
                found[self.texts[one]].add(self.texts[column])
        return found


def _links(tables: _Tables, wildcard: _Wildcard) -> Iterator[Derivation]:
    shards = [name for name in tables.names if _is_shard(name, wildcard)]
    paths = tables.paths([wildcard.name, *shards])
    read = paths[wildcard.name] - {ROWS}
    everywhere = read - {HIDDEN} - set().union(*(paths[shard] for shard in shards))
    statement = tables.statement(wildcard.reader)
    for shard in shards:
        edges = _edges_of_shard(shard, paths[shard] - {ROWS, HIDDEN}, read, everywhere)
        outputs = tuple(OutputColumn(path) for path in dict.fromkeys(edge.target_path for edge in edges))
        outputs = tuple(output for output in outputs if output.path not in (ROWS, HIDDEN))
        yield Derivation(wildcard.name, "view", "append", statement, outputs, HIDDEN not in read, tuple(edges))
    further = [ColumnRef(shard, path) for shard in shards for path in sorted(paths[shard] - read - {ROWS, HIDDEN})]
    if further and HIDDEN not in read:
        edges = [Edge(ref, HIDDEN, EdgeKind.OPAQUE, reason="star-unresolved") for ref in further]
        for reader in tables.stars_over(wildcard.name):
            target, kind = (tables.texts[tables.columns[name][reader]] for name in ("d.target", "d.target_kind"))
            yield Derivation(target, kind, "append", tables.statement(reader), (), False, tuple(edges))


def _edges_of_shard(shard: str, known: set[str], read: set[str], everywhere: set[str]) -> list[Edge]:
    """The edges from a shard into the wildcard.

    Args:
        shard: Its name.
        known: Its columns, as far as anything names them.
        read: What is read of the wildcard.
        everywhere: Of that the columns that no shard is known to have: any may.
    """
    columns = sorted(((read - {HIDDEN}) & known) | everywhere)
    edges = [Edge(ColumnRef(shard, path), path, EdgeKind.IDENTITY) for path in columns]
    if HIDDEN in read:
        edges += [Edge(ColumnRef(shard, path), path, EdgeKind.IDENTITY, star=True) for path in sorted(known - read)]
        edges.append(Edge(ColumnRef(shard, HIDDEN), HIDDEN, EdgeKind.OPAQUE, reason="star-unresolved"))
    return [*edges, Edge(ColumnRef(shard, ROWS), ROWS, EdgeKind.READ)]


def is_shard_of(name: str, wildcards: Iterable[str]) -> bool:
    """Return whether a dataset may be a shard of one of some wildcards."""
    return any(_is_shard(name, _Wildcard(each, 0)) for each in wildcards if len(split_name(each)) > 1)


def _is_shard(name: str, wildcard: _Wildcard) -> bool:
    if name.endswith(WILDCARD_END):
        return False
    parts = split_name(name)
    return parts[:-1] == wildcard.parent and parts[-1].strip('"').startswith(wildcard.prefix)
