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

from govtool.arrays.layout import narrowed
from govtool.graph import layout
from govtool.graph.build_meter import BuildMeter
from govtool.graph.codes import (
    APPEND,
    DECLARE,
    DELETE,
    DROP,
    ELIDED,
    HIDDEN,
    MASKING_BIT,
    MODES,
    PARTIAL,
    RENAME,
    REPLACE,
    ROW_MAKER,
    STAR_BIT,
    WHOLE,
)
from govtool.graph.columns import Strings, numbered
from govtool.graph.digests import dataset_digests
from govtool.graph.fold import KEEPS, REFILLS, REMAKES, fold
from govtool.graph.gathered import Gathered, gather, with_table
from govtool.graph.last_stated import StatedOrder, enter_last
from govtool.graph.name_arrays import name_arrays
from govtool.graph.node_numbers import number_nodes
from govtool.graph.shards import shard_links
from govtool.graph.stars import Shape, spell_out
from govtool.model.derivation import HIDDEN as UNKNOWN
from govtool.model.derivation import ROWS
from govtool.model.kinds import EdgeKind
from govtool.names import join_name, quote, split_name, unquote

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
    yield from _Builder(gathered).pack(meter or BuildMeter(None, ()))


class _Builder:
    """The steps of one build; each reads what the earlier ones left."""

    def __init__(self, gathered: Gathered) -> None:
        self.columns = gathered.columns
        self.strings = Strings(gathered.texts)
        self.count = gathered.derivations
        self.out: dict[str, Any] = {}

    def pack(self, meter: BuildMeter) -> Iterator[Any]:
        """Run the steps and pack what they leave."""
        # The share of the CPU time of all steps that each took in a graph of 400,000 edges, in percent.
        steps = (
            (self._datasets, 3),
            (self._fold, 2),
            (self._reads, 5),
            (self._nodes, 52),
            (self._edges, 8),
            (self._references, 1),
            (self._outputs, 9),
            (self._statements, 1),
            (self._names, 5),
            (self._digests, 14),
        )
        total = sum(cost for _, cost in steps)
        done = 0
        for step, cost in steps:
            step()
            done += cost
            meter.stepped(done / total)
        return layout.pack(narrowed(self.out), self._meta())

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
        mentioned = np.unique(np.concatenate([c["d.target"], c["e.source_dataset"], c["r.dataset"]]))
        ordered = sorted(mentioned.tolist(), key=texts.__getitem__)
        self.dataset_names = ordered
        rank = np.zeros(len(texts), np.int64)
        rank[ordered] = np.arange(len(ordered))
        self.target = rank[c["d.target"]]
        self.edge_derivation = c["e.derivation"]
        self.edge_source = rank[c["e.source_dataset"]]
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
        # References begin at the same generation of a table as the edges of their statement.
        derivation = np.concatenate([self.edge_derivation, self.reference_derivation])
        source = np.concatenate([self.edge_source, self.reference_source])
        folded = fold(self.target, self.mode, group, time, resets, temporary, derivation, source, n)
        edges = len(self.edge_source)
        self.alive, self.target = folded.alive, folded.target
        self.edge_source, self.reference_source = folded.source[:edges], folded.source[edges:]
        self.dataset_names = [*self.dataset_names, *(self.dataset_names[i] for i in folded.origin)]
        self.flags = np.zeros(len(self.dataset_names), np.uint8)
        self.flags[list(folded.dropped)] = ELIDED | HIDDEN
        self.flags[n:] = ELIDED | HIDDEN
        self._name_temporaries(temporary)
        self._kinds()
        self._renumber()

    def _name_temporaries(self, temporary: Any) -> None:
        """Put the source into the names of temporary tables that scripts of several sources have in common.

        A file is named from the folder of its source, so that ``temp."load.sql".t`` may be of several sources.
        """
        import numpy as np

        texts = self.strings.texts
        live = np.flatnonzero(self.alive & temporary)
        made = {(int(self.target[d]), int(self.columns["d.source"][d])) for d in live.tolist()}
        owners: dict[int, set[int]] = {}
        for dataset, source in made:
            owners.setdefault(self.dataset_names[dataset], set()).add(source)
        shared = [(dataset, source) for dataset, source in made if len(owners[self.dataset_names[dataset]]) > 1]
        for dataset, source in sorted(shared):
            parts = split_name(texts[self.dataset_names[dataset]])
            at = min(1, len(parts) - 1)  # the session; of a name without one, the name
            parts[at] = quote(f"{texts[source]}/{unquote(parts[at])}")
            self.dataset_names[dataset] = self.strings.add(join_name(parts))

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
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        self.target, self.edge_source = rank[self.target], rank[self.edge_source]
        self.reference_source = rank[self.reference_source]
        self.dataset_names = [self.dataset_names[i] for i in order]
        self.flags, self.kind = self.flags[order], self.kind[order]

    def _reads(self) -> None:
        """Drop the edges of what is gone, and add the ``read`` edges that are missing."""
        import numpy as np

        c = self.columns
        keep = np.flatnonzero(self.alive[self.edge_derivation])
        derivation, source = self.edge_derivation[keep], self.edge_source[keep]
        rows = self.strings.add(ROWS)
        fields = {
            n: c[f"e.{n}"][keep]
            for n in ("source_path", "target_path", "functions", "reason", "kind", "arm", "star", "masking")
        }
        n = max(1, len(self.dataset_names))
        pair = derivation * n + source
        plain_reads = (
            (fields["kind"] == EdgeKind.READ) & (fields["target_path"] == rows) & (fields["source_path"] == rows)
        )
        foreign = pair[(source != self.target[derivation])]
        missing = np.setdiff1d(foreign, pair[plain_reads])
        added = len(missing)
        self.edge_derivation = np.concatenate([derivation, missing // n])
        self.edge_source = np.concatenate([source, missing % n])
        fill = {"source_path": rows, "target_path": rows, "kind": int(EdgeKind.READ)}
        self.edge = {
            name: np.concatenate([values, np.full(added, fill.get(name, 0), values.dtype)])
            for name, values in fields.items()
        }

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
            (self.edge_source, self.edge["source_path"]),
            (self.target[self.edge_derivation], self.edge["target_path"]),
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
        self.edge = {name: np.concatenate([values, values[like]]) for name, values in self.edge.items()}
        self.edge_derivation = np.concatenate([self.edge_derivation, self.edge_derivation[like]])
        self.edge_from = np.concatenate([self.edge_from, starts])
        self.edge_to = np.concatenate([self.edge_to, ends])

    def _edges(self) -> None:
        """Order edges by source, and index them both ways."""
        import numpy as np

        self._open_stars()
        edge = self.edge
        kind = edge["kind"].astype(np.int64)
        read = kind == EdgeKind.READ
        order = np.argsort((self.edge_from << 32) | (read.astype(np.int64) << 31) | self.edge_to, kind="stable")
        nodes = len(self.node_path)
        src, dst = self.edge_from[order], self.edge_to[order]
        tag = kind | np.where(edge["star"], STAR_BIT, 0) | np.where(edge["masking"], MASKING_BIT, 0)
        label, functions, reasons = _labels(edge["functions"], edge["reason"])
        back = np.argsort(dst, kind="stable")
        offsets = np.searchsorted(src, np.arange(nodes + 1))
        first_read = np.searchsorted((src << 1) | read[order], (self.base[:-1] << 1) | 1)
        self.out |= {
            "edge_source": src,
            "edge_target": dst,
            "edge_tag": tag[order],
            "edge_label": label[order],
            "edge_arm": edge["arm"][order],
            "edge_derivation": self.edge_derivation[order],
            "forward": offsets,
            "backward": np.searchsorted(dst[back], np.arange(nodes + 1)),
            "backward_edge": back,
            "label_functions": functions,
            "label_reason": reasons,
            "dataset_opaque": first_read - offsets[self.base[:-1]],
        }

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

        derivation, node = self.output_derivation, self.output_node
        listed = np.zeros(self.count, bool)
        listed[derivation] = True
        # Where no columns are declared, what the edges lead to are the outputs.
        inferred = ~listed[self.edge_derivation] & (self.node_path[self.edge_to] != self.strings.add(ROWS))
        pairs = np.unique(
            (np.concatenate([derivation, self.edge_derivation[inferred]]) << 32)
            | np.concatenate([node, self.edge_to[inferred]])
        )
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
        import numpy as np

        c = self.columns
        number = numbered(
            c["d.source"], c["d.file"], c["d.session"], c["d.first_seen"], c["d.line"], c["d.fingerprint"]
        )
        live = np.flatnonzero(self.alive)
        order = live[np.argsort(number[live], kind="stable")]
        count = int(number.max()) + 1 if len(number) else 0
        by_target = live[np.argsort(self.target[live], kind="stable")]
        self.out |= {
            "derivation_statement": number,
            "statement": np.searchsorted(number[order], np.arange(count + 1)),
            "statement_derivation": order,
            "maker": np.searchsorted(self.target[by_target], np.arange(len(self.dataset_names) + 1)),
            "maker_derivation": by_target,
            "derivation_target": self.target,
            "derivation_mode": self.mode,
            "derivation_complete": c["d.complete"],
            "derivation_line": c["d.line"],
            "derivation_count": c["d.count"],
            "derivation_min_group": c["d.min_group"],
            "diagnostic": np.searchsorted(c["g.derivation"], np.arange(self.count + 1)),
            "diagnostic_json": c["g.json"],
        }
        for name in (
            "fingerprint", "kind", "dialect", "file", "source", "how", "session", "text", "run", "principal",
            "first_seen", "last_seen", "status", "min_group_of", "places", "literals",
        ):  # fmt: skip
            self.out[f"derivation_{name}"] = c[f"d.{name}"]

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

    def _meta(self) -> dict[str, Any]:
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


def _labels(functions: Any, reasons: Any) -> tuple[Any, Any, Any]:
    """Number the distinct pairs of functions and reason."""
    import numpy as np

    width = int(reasons.max()) + 1 if len(reasons) else 1
    key = functions.astype(np.int64) * width + reasons
    most = int(key.max()) + 1 if len(key) else 1
    if most > 4 * len(key) + 1024:
        known, label = np.unique(key, return_inverse=True)
    else:
        used = np.zeros(most, bool)
        used[key] = True
        known = np.flatnonzero(used)
        label = (np.cumsum(used) - 1)[key]
    return label, known // width, known % width
