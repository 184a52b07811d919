"""Builds the arrays of an index from tables of derivations. Works in whole columns; tens of millions of edges will do.

Nodes are numbered by name: datasets in order, and in each dataset its row set first, then its columns in order. Edges
are numbered by source, a row set's ``read`` edges after its others, then by target. See ``govtool.graph.index`` for
what each array means.

Every derivation that uses a column of another dataset also reads that dataset's rows: where the evidence does not say
so (lineage events may not), a ``read`` edge is added, so that a walk can rely on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from govtool.arrays.layout import narrow, narrowed
from govtool.graph import layout
from govtool.graph.builder.columns import Strings, numbered
from govtool.graph.builder.edge_arrays import behind, edge_tags, labels, with_reads
from govtool.graph.builder.fold import KEEPS, REFILLS, REMAKES, fold
from govtool.graph.builder.gathered import Gathered, gather, with_table
from govtool.graph.builder.last_stated import StatedOrder, enter_last
from govtool.graph.builder.meter import BuildMeter
from govtool.graph.builder.name_arrays import name_arrays, temporary_names
from govtool.graph.builder.node_numbers import number_nodes
from govtool.graph.builder.shards import shard_links
from govtool.graph.builder.stars import Shape, spell_out
from govtool.graph.builder.statement_arrays import statement_arrays
from govtool.graph.codes import (
    APPEND,
    DECLARE,
    DELETE,
    DROP,
    ELIDED,
    HIDDEN,
    KIND_MASK,
    MODES,
    PARTIAL,
    RENAME,
    REPLACE,
    ROW_MAKER,
    STAR_BIT,
    WHOLE,
)
from govtool.graph.digests import dataset_digests
from govtool.model.derivation import HIDDEN as UNKNOWN
from govtool.model.derivation import ROWS
from govtool.model.kinds import EdgeKind

_FILLS = ("insert", "copy", "load")


def build(tables: Iterable[Any]) -> Iterator[Any]:
    """Yield the packed index (see ``layout.pack``) of the graph that the derivations of ``tables`` make.

    Args:
        tables: Tables of ``govtool.model.columnar.read_table``.
    """
    return build_gathered(gather((str(number), table) for number, table in enumerate(tables)))


def build_gathered(gathered: Gathered, meter: BuildMeter | None = None) -> Iterator[Any]:
    """Yield the packed index of the graph that gathered derivations make; they are used up.

    Args:
        gathered: The derivations.
        meter: Is given what is done.
    """
    links = shard_links(gathered)
    if links:
        from govtool.model.columnar import to_table

        gathered = with_table(gathered, to_table(links))
    builder = IndexBuilder(gathered)
    builder.run(meter or BuildMeter(None, ()))
    yield from layout.pack(narrowed(builder.out), builder.meta())


class IndexBuilder:
    """The steps of one build; each reads what the earlier ones left.

    Args:
        gathered: The derivations; they are used up.
    """

    def __init__(self, gathered: Gathered) -> None:
        self.columns = gathered.columns
        self.strings = Strings(gathered.texts)
        self.count = gathered.derivations
        self.out: dict[str, Any] = {}

    def run(self, meter: BuildMeter) -> None:
        """Run the steps; ``out`` has the arrays then."""
        # The share of the CPU time of all steps that each took in a graph of 10 million edges, in percent.
        steps = (
            (self._datasets, 3),
            (self._fold, 4),
            (self._reads, 12),
            (self._nodes, 24),
            (self._edges, 17),
            (self._references, 1),
            (self._outputs, 2),
            (self._statements, 1),
            (self._names, 7),
            (self._digests, 29),
        )
        total = sum(cost for _, cost in steps)
        done = 0
        for step, cost in steps:
            step()
            done += cost
            meter.stepped(done / total)

    @property
    def _stated(self) -> StatedOrder:
        return StatedOrder(self.columns, self.strings.texts)

    def _digests(self) -> None:
        self.out["dataset_digest"] = dataset_digests(self.out, self.strings.texts, STAR_BIT)

    def _datasets(self) -> None:
        """Number datasets by name, whoever mentions them."""
        import numpy as np

        c = self.columns
        texts = self.strings.texts
        mentioned = np.zeros(len(texts), bool)
        for name in ("d.target", "e.source_dataset", "r.dataset"):
            mentioned[c[name]] = True
        ordered = sorted(np.flatnonzero(mentioned).tolist(), key=texts.__getitem__)
        self.dataset_names = ordered
        rank = np.zeros(len(texts), np.int32)
        rank[ordered] = np.arange(len(ordered))
        self.target = rank[c["d.target"]]
        self.edge_derivation = c.pop("e.derivation")
        self.edge_source = rank[c.pop("e.source_dataset")]
        self.reference_derivation = c["r.derivation"]
        self.reference_source = rank[c["r.dataset"]]
        code = np.zeros(len(texts), np.uint8)
        for name in {texts[i] for i in np.unique(c["d.mode"]).tolist()}:
            # A mode of a later version means at least that something is added.
            code[self.strings.add(name)] = MODES.index(name) if name in MODES else APPEND
        self.mode = code[c["d.mode"]]

    def _fold(self) -> None:
        import numpy as np

        c = self.columns
        select = self.strings.add("select")
        group = numbered(c["d.source"], np.where(c["d.session"] > 0, c["d.session"], c["d.file"]), c["d.session"] > 0)
        seen = np.array(sorted(set(c["d.first_seen"].tolist()), key=self.strings.texts.__getitem__), np.int64)
        rank = np.zeros(len(self.strings.texts), np.int64)
        rank[seen] = np.arange(len(seen))
        time = numbered(rank[c["d.first_seen"]], c["d.line"])
        n = len(self.dataset_names)
        # INSERT OVERWRITE, COPY and LOAD fill a table anew and leave its declaration alone.
        fills = [i for i in np.unique(c["d.kind"]).tolist() if self.strings.texts[i].startswith(_FILLS)]
        resets = np.where(c["d.kind"] == select, KEEPS, np.where(np.isin(c["d.kind"], fills), REFILLS, REMAKES))
        temporary = c["d.target_kind"] == self.strings.add("temporary")
        makes = (self.mode != DELETE) | (np.bincount(self.edge_derivation, minlength=self.count) > 0)
        # References begin at the same generation of a table as the edges of their statement.
        derivation = np.concatenate([self.edge_derivation, self.reference_derivation])
        source = np.concatenate([self.edge_source, self.reference_source])
        folded = fold(self.target, self.mode, group, time, resets, temporary, makes, derivation, source, n)
        edges = len(self.edge_source)
        self.alive, self.target = folded.alive, folded.target.astype(np.int32)
        source = folded.source.astype(np.int32, copy=False)
        self.edge_source, self.reference_source = source[:edges], source[edges:]
        self.dataset_names = [*self.dataset_names, *(self.dataset_names[i] for i in folded.origin)]
        self.flags = np.zeros(len(self.dataset_names), np.uint8)
        self.flags[list(folded.dropped)] = ELIDED | HIDDEN
        self.flags[n:] = ELIDED | HIDDEN
        live = np.flatnonzero(self.alive & temporary)
        made = {(int(self.target[d]), int(c["d.source"][d])) for d in live.tolist()}
        self.dataset_names = temporary_names(self.strings, self.dataset_names, made)
        self._kinds()
        self._renumber()

    def _kinds(self) -> None:
        """The kind of each dataset: of the last derivation that makes it to stay; ``external`` if it is only read."""
        import numpy as np

        kind = np.full(len(self.dataset_names), self.strings.add("external"), np.int64)
        temporary = self.strings.add("temporary")
        stays = self.columns["d.target_kind"] != temporary
        live = np.flatnonzero(self.alive)
        rank = 2 * stays[live] + (self.mode[live] != DECLARE)
        enter_last(kind, self.target[live], self.columns["d.target_kind"][live], live, rank, self._stated)
        self.flags[kind == temporary] |= ELIDED | HIDDEN
        self.kind = kind

    def _renumber(self) -> None:
        """Put ended generations beside the dataset that they were."""
        import numpy as np

        texts = self.strings.texts
        order = sorted(range(len(self.dataset_names)), key=lambda i: (texts[self.dataset_names[i]], i))
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order))
        self.target, self.edge_source = rank[self.target], rank[self.edge_source]
        self.reference_source = rank[self.reference_source]
        self.dataset_names = [self.dataset_names[i] for i in order]
        self.flags, self.kind = self.flags[order], self.kind[order]

    def _reads(self) -> None:
        """Drop the edges of what is gone, and add the ``read`` edges that are missing."""
        c = self.columns
        rows = self.strings.add(ROWS)
        edge = {
            "derivation": self.edge_derivation,
            "source": self.edge_source,
            "source_path": c.pop("e.source_path"),
            "target_path": c.pop("e.target_path"),
            "tag": edge_tags(c.pop("e.kind"), c.pop("e.star"), c.pop("e.masking")),
            "functions": c.pop("e.functions"),
            "reason": c.pop("e.reason"),
            "arm": narrow(c.pop("e.arm")),
        }
        edge = with_reads(edge, self.alive, self.target, rows)
        self.edge_derivation, self.edge_source = edge.pop("derivation"), edge.pop("source")
        edge["label"], functions, reasons = labels(edge.pop("functions"), edge.pop("reason"))
        self.out |= {"label_functions": functions, "label_reason": reasons}
        self.edge = edge

    def _nodes(self) -> None:
        """Number nodes, and find for each edge the node at either end."""
        import numpy as np

        c = self.columns
        outputs = np.flatnonzero(self.alive[c["o.derivation"]])
        self.output_derivation = c["o.derivation"][outputs]
        self.output_type = c["o.type"][outputs]
        references = np.flatnonzero(self.alive[self.reference_derivation])
        self.reference_derivation = self.reference_derivation[references]
        ends = [
            (self.reference_source[references], c["r.path"][references]),
            (self.edge_source, self.edge.pop("source_path")),
            (self.target[self.edge_derivation], self.edge.pop("target_path")),
            (self.target[self.output_derivation], c["o.path"][outputs]),
        ]
        nodes = number_nodes(self.strings, len(self.dataset_names), ends)
        self.node_dataset, self.node_path, self.base, self.nested = nodes.dataset, nodes.path, nodes.base, nodes.nested
        self.reference_from, self.edge_from, self.edge_to, self.output_node = nodes.ends
        self.unknown = np.flatnonzero(self.node_path == self.strings.add(UNKNOWN))

    def _open_stars(self) -> None:
        """Spell out what unresolved stars may carry."""
        import numpy as np

        shape = Shape(self.node_path, self.node_dataset, self.base, self.nested[0], self.unknown)
        mentions = (
            (self.edge_derivation, self.edge_from),
            (self.edge_derivation, self.edge_to),
            (self.output_derivation, self.output_node),
            (self.reference_derivation, self.reference_from),
        )
        like, starts, ends = spell_out(shape, self.edge_derivation, self.edge_from, self.edge_to, mentions)
        if not len(like):
            return
        places = behind(self.edge_derivation, self.edge_derivation[like])
        self.edge = {name: np.insert(values, places, values[like]) for name, values in self.edge.items()}
        self.edge_from = np.insert(self.edge_from, places, starts)
        self.edge_to = np.insert(self.edge_to, places, ends)
        self.edge_derivation = np.insert(self.edge_derivation, places, self.edge_derivation[like])

    def _edges(self) -> None:
        """Order edges by source, and index them both ways."""
        import numpy as np

        from govtool.arrays.csr import offsets_of
        from govtool.arrays.sets import stable_order

        self._open_stars()
        read = (self.edge["tag"] & KIND_MASK) == EdgeKind.READ
        nodes = len(self.node_path)
        by_target = stable_order(self.edge_to)
        first = self.edge_from.astype(np.int64) << 1 | read
        order = by_target[stable_order(first[by_target])].astype(np.int32)
        del by_target, first
        src, dst = self.edge_from[order], self.edge_to[order]
        offsets = offsets_of(src, nodes)
        row_set = np.zeros(nodes, bool)
        row_set[self.base[:-1]] = True
        opaque = src[row_set[src] & ~read[order]]
        self.out |= {
            "edge_source": narrow(src),
            "edge_target": narrow(dst),
            **{f"edge_{name}": values[order] for name, values in self.edge.items()},
            "edge_derivation": narrow(self.edge_derivation[order]),
            "forward": narrow(offsets),
            "backward": narrow(offsets_of(dst, nodes)),
            "dataset_opaque": np.bincount(self.node_dataset[opaque], minlength=len(self.dataset_names)),
        }
        self.edge = {}
        del order, src, opaque, offsets
        self.out["backward_edge"] = narrow(stable_order(dst))

    def _references(self) -> None:
        """Order what statements name without handing it on by column; each with the row set of what they make."""
        import numpy as np

        order = np.lexsort((self.reference_derivation, self.reference_from))
        derivation = self.reference_derivation[order]
        self.out |= {
            "reference": self.reference_from[order],
            "reference_derivation": derivation,
            "reference_rows": self.base[self.target[derivation]],
        }

    def _outputs(self) -> None:
        """Return the outputs of each derivation, and whether it makes the whole dataset."""
        import numpy as np

        from govtool.arrays.sets import distinct

        derivation, node = self.output_derivation, self.output_node
        listed = np.zeros(self.count, bool)
        listed[derivation] = True
        # Where no columns are declared, what the edges lead to are the outputs.
        inferred = np.flatnonzero(~listed[self.edge_derivation])
        inferred = inferred[self.node_path[self.edge_to[inferred]] != self.strings.add(ROWS)]
        pairs = distinct(
            (np.concatenate([derivation, self.edge_derivation[inferred]]).astype(np.int64) << 32)
            | np.concatenate([node, self.edge_to[inferred]])
        )
        del self.edge_derivation, self.edge_from, self.edge_to
        owner, node = pairs >> 32, pairs & 0xFFFFFFFF
        top = np.ones(len(self.node_path), bool)
        top[self.base[:-1]] = False
        top[self.nested[0]] = False
        top[self.unknown] = False
        tops = np.add.reduceat(top.astype(np.int64), self.base[:-1]) if len(self.base) > 1 else np.empty(0, np.int64)
        covered = np.bincount(owner[top[node]], minlength=self.count)
        whole = (self.mode == REPLACE) | (self.mode == RENAME)
        whole |= (self.mode == APPEND) & (covered > 0) & (covered >= tops[self.target])
        types = np.zeros(len(self.node_path), np.int64)
        typed = np.flatnonzero(self.output_type > 0)
        declares = self.mode[self.output_derivation[typed]] == DECLARE
        derivations = self.output_derivation[typed]
        enter_last(types, self.output_node[typed], self.output_type[typed], derivations, declares, self._stated)
        declared = np.zeros(len(self.node_path), np.uint8)
        declared[self.output_node[typed[declares]]] = 1
        self.out |= {
            "output": np.searchsorted(owner, np.arange(self.count + 1)),
            "output_node": node,
            "derivation_whole": np.where(
                whole, WHOLE, np.where((self.mode == APPEND) | (self.mode == DELETE), ROW_MAKER, PARTIAL)
            ),
            "dataset_columns": tops,
            "node_type": types,
            "node_declared": declared,
        }

    def _statements(self) -> None:
        """Group derivations by the statement that said them, and keep the evidence."""
        self.out |= {
            "derivation_target": self.target,
            "derivation_mode": self.mode,
            **statement_arrays(self.columns, self.alive, self.target, len(self.dataset_names)),
        }

    def _names(self) -> None:
        """Datasets and nodes with their names, and what is found by the end of a name."""
        import numpy as np

        own = {self.strings.add(ROWS), self.strings.add(UNKNOWN)}
        self.out |= name_arrays(
            self.strings.texts, self.dataset_names, self.flags, self.node_dataset, self.node_path, own
        )
        parent_order = np.argsort(self.nested[1], kind="stable")
        self.out |= {
            "dataset_name": np.array(self.dataset_names, np.int64),
            "dataset_base": self.base,
            "dataset_kind": self.kind,
            "dataset_flags": self.flags,
            "node_path": self.node_path,
            "node_dataset": self.node_dataset,
            "unknown": self.unknown,
            "nested": self.nested[0],
            "nested_parent": self.nested[1],
            "container": self.nested[1][parent_order],
            "container_child": self.nested[0][parent_order],
        }

    def meta(self) -> dict[str, Any]:
        """What the index says of itself."""
        import numpy as np

        shown = (self.flags & ELIDED) == 0
        return {
            "datasets": int(np.count_nonzero(shown)),
            "columns": int(self.out["dataset_columns"][shown].sum()) if len(shown) else 0,
            "nodes": len(self.node_path),
            "edges": len(self.out["edge_source"]),
            "derivations": int(np.count_nonzero(self.mode != DROP)),
            "opaque_rows": bool(self.out["dataset_opaque"].any()),
        }
