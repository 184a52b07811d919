"""The index of one version of the graph: named views on a mapped buffer, and the small questions they answer.

Arrays, by what they are indexed with (an offsets array has one item more; ``x`` of i is ``x_y[x[i]:x[i+1]]``):

    string      string → text (UTF-8); string 0 is the absent one
    dataset_*   name, base (node of its row set; its columns follow), kind, flags, columns (top-level ones),
                opaque (how many edges leave its row set that are not ``read``), digest (two integers each, see
                ``govtool.graph.digests``); maker → maker_derivation
    node_*      path, dataset, type, declared; forward → edges; backward → backward_edge; nested, nested_parent (sorted
                pairs); container, container_child (the same pairs by container); unknown (the ``?`` nodes)
    edge_*      source, target, tag (kind | star << 4 | masking << 5), label, arm, derivation
    label_*     functions, reason
    reference   columns that statements name and hand nothing on of, sorted; reference_derivation, reference_rows (the
                row set of what that derivation makes)
    derivation_* target, mode, whole, complete, statement, file, line …; output → output_node; diagnostic → …_json
    statement   → statement_derivation
    *_suffix    datasets and paths sorted by ``suffix_key``; path → path_node

Importing this module costs nothing: no numpy, and strings are decoded when asked for.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from govtool.errors import IntegrityError
from govtool.graph import layout
from govtool.graph.codes import DEFINING, KIND_MASK, MASKING_BIT, MODES, PARTITION, STAR_BIT
from govtool.graph.node_names import NodeNames
from govtool.model.columnar import split_counted, split_functions
from govtool.model.derivation import Statement
from govtool.model.diagnostic import Diagnostic
from govtool.model.kinds import EdgeKind

_KINDS = tuple(EdgeKind)


class Index(NodeNames):
    """The graph of one commit, read-only. Nodes, edges, datasets and derivations are numbers.

    Args:
        buffer: What ``govtool.graph.builder.build.build`` yielded, joined or mapped; it must outlive the index.

    Raises:
        IntegrityError: The buffer is damaged.
        FormatError: It was built by a version with another layout.
    """

    paths_root: str = ""
    """The folder to which names of local files are relative, if there is one: absolute names are found by it, too."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self.arrays, self.meta = self._view(buffer)
        try:
            self._string, self._text = self.arrays["string"], self.arrays["text"]
            self._name_arrays()
        except KeyError as error:
            raise IntegrityError(f"The index lacks {error}", code="store.corrupt-index") from error
        self.node_count = len(self._node_path)
        self.edge_count = len(self.edge_source)
        self.dataset_count = len(self._dataset_name)

    def _view(self, buffer: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arrays by name, and what the index says of itself."""
        return layout.view(buffer)

    def _name_arrays(self) -> None:
        a = self.arrays
        self._node_path, self.node_dataset = a["node_path"], a["node_dataset"]
        self.dataset_base, self.dataset_flags, self._dataset_name = (
            a["dataset_base"],
            a["dataset_flags"],
            a["dataset_name"],
        )
        self.forward, self.backward, self.backward_edge = a["forward"], a["backward"], a["backward_edge"]
        self.edge_source, self.edge_target, self.edge_tag = a["edge_source"], a["edge_target"], a["edge_tag"]
        self.edge_derivation, self._edge_label = a["edge_derivation"], a["edge_label"]
        self.nested, self._parent = a["nested"], a["nested_parent"]
        self._container, self._child = a["container"], a["container_child"]
        self._unknown = a["unknown"]
        self._reference, self._reference_rows = a["reference"], a["reference_rows"]
        self._reference_derivation = a["reference_derivation"]

    @property
    def is_paged(self) -> bool:
        """True if asking costs requests: then it pays to say beforehand what will be asked (`prefetch`)."""
        return False

    def resident(self) -> Index:
        """The index with all of its arrays here: itself, save where ``govtool.graph.paging.paged`` reads pages."""
        return self

    def folded(self) -> Index:
        """The index as one file (``buffer``): itself, save where ``govtool.graph.delta.spliced`` reads two."""
        return self.resident()

    def prefetch(self, nodes: Iterable[int]) -> None:
        """Called by walks with the nodes that they visit next; see ``govtool.graph.paging.paged``."""

    # Fields within columns.

    def container(self, node: int) -> int | None:
        """The column or field that contains a field."""
        at = bisect_left(self.nested, node)
        return self._parent[at] if at < len(self.nested) and self.nested[at] == node else None

    def containers(self, node: int) -> list[int]:
        """Return the containers of a field, nearest first.

        Raises:
            IntegrityError: The index is damaged.
        """
        found: list[int] = []
        above = self.container(node) if len(self.nested) else None
        while above is not None:
            _check_below(above, found[-1] if found else node)
            found.append(above)
            above = self.container(above)
        return found

    def fields(self, node: int) -> list[int]:
        """All fields below a column, in order.

        Raises:
            IntegrityError: The index is damaged.
        """
        found: list[int] = []
        if not len(self._container):
            return found
        stack = [node]
        while stack:
            at = bisect_left(self._container, above := stack.pop())
            while at < len(self._container) and self._container[at] == above:
                _check_below(above, self._child[at])
                found.append(self._child[at])
                stack.append(self._child[at])
                at += 1
        return sorted(found)

    # Edges.

    def out_edges(self, node: int) -> range:
        """The edges that leave a node."""
        return range(self.forward[node], self.forward[node + 1])

    def in_edges(self, node: int) -> list[int]:
        """The edges that enter a node, in their order."""
        return self.backward_edge[self.backward[node] : self.backward[node + 1]].tolist()

    def row_edges(self, dataset: int) -> range:
        """The edges out of its row set that are not ``read``: they stand for any of its columns."""
        start = self.forward[self.dataset_base[dataset]]
        return range(start, start + self.arrays["dataset_opaque"][dataset])

    def kind(self, edge: int) -> EdgeKind:
        """The kind of an edge."""
        return _KINDS[self.edge_tag[edge] & KIND_MASK]

    def is_star(self, edge: int) -> bool:
        """Return whether no statement names the source: it is reached through ``*``."""
        tag = self.edge_tag[edge]
        return bool(tag & STAR_BIT) and tag & KIND_MASK != EdgeKind.READ

    def is_optional(self, edge: int) -> bool:
        """Return whether an edge is a READ of a dataset without which there are rows all the same."""
        return bool(self.edge_tag[edge] & STAR_BIT) and self.kind(edge) is EdgeKind.READ

    def is_masking(self, edge: int) -> bool:
        """Return whether the edge masks the value."""
        return bool(self.edge_tag[edge] & MASKING_BIT)

    def functions(self, edge: int) -> tuple[str, ...]:
        """The functions applied on an edge, innermost first."""
        return split_functions(self.string(self.arrays["label_functions"][self._edge_label[edge]]))

    def reason(self, edge: int) -> str | None:
        """Return the reason why an edge is opaque."""
        return self.string(self.arrays["label_reason"][self._edge_label[edge]])

    def arm(self, edge: int) -> int:
        """Return the alternative of its derivation that an edge belongs to."""
        number: int = self.arrays["edge_arm"][edge]
        return number

    # References: what statements name and hand nothing on of.

    def references(self, node: int) -> Sequence[int]:
        """The references to a column, by number; see ``Index.referrer``."""
        low = bisect_left(self._reference, node)
        high = low
        while high < len(self._reference) and self._reference[high] == node:
            high += 1
        return range(low, high)

    @property
    def reference_count(self) -> int:
        """Number of references."""
        return len(self._reference)

    def referred(self, reference: int) -> int:
        """The column that a reference names."""
        node: int = self._reference[reference]
        return node

    def referrer(self, reference: int) -> int:
        """The derivation whose statement names it."""
        derivation: int = self._reference_derivation[reference]
        return derivation

    def referring_rows(self, reference: int) -> int:
        """The row set of what that derivation makes."""
        node: int = self._reference_rows[reference]
        return node

    def names_own(self, reference: int) -> bool:
        """Return whether a statement names a column of the dataset that it writes.

        It does so to fill it, or to read what is there. A reference to the row set (``*``) is that of an INSERT
        without a list, which goes by the position of the columns.
        """
        rows = self._reference_rows[reference]
        return bool(self.node_dataset[self._reference[reference]] == self.node_dataset[rows])

    def lists_columns(self, derivation: int, dataset: int) -> bool:
        """Return whether a statement takes the columns of a dataset by their position: ``FROM t AS x(a, b)``."""
        rows = self.rows(dataset)
        return any(
            self._reference_derivation[one] == derivation and not self.names_own(one) for one in self.references(rows)
        )

    def takes_position(self, reference: int) -> bool:
        """Return whether a statement takes the column that it refers to by its position, and so minds no name."""
        dataset = self.node_dataset[self._reference[reference]]
        return not self.names_own(reference) and self.lists_columns(self.referrer(reference), dataset)

    def inheritors(self, node: int) -> Iterator[tuple[int, int]]:
        """Yield the columns of partitions, and of tables that inherit a column, each with the edge that shows it."""
        for edge in self.in_edges(node):
            source = self.edge_source[edge]
            if self.field(self.derivation_of(edge), "kind") == PARTITION and not self.is_rows(source):
                yield source, edge

    def is_referred(self, reference: int, node: int, *, seed: bool) -> bool:
        """Return whether a reference counts from a column that a walk reached, or began at.

        A statement that fills a table fails where a column of the table is gone: because that is the change itself, or
        because the query that defines the table no longer has it. It does not where another statement ceased to fill
        it.
        """
        return seed or not self.names_own(reference) or self.is_defined(node)

    def is_defined(self, node: int) -> bool:
        """Return whether the statement that creates a column's dataset selects it: gone there, it is gone."""
        return any(
            self.mode(made) == "replace" and self.field(made, "kind") in DEFINING
            for made in map(self.derivation_of, self.in_edges(node))
        )

    # A walk takes a reference like an edge: of the numbers that are no edges, the first is the first reference.

    def is_reference(self, edge: int) -> bool:
        """Return whether the number of a step of a walk is that of a reference, ``edge_count + reference``."""
        return edge >= self.edge_count

    def derivation_of(self, edge: int) -> int:
        """The derivation behind a step of a walk: of an edge or a reference."""
        if edge >= self.edge_count:
            return self.referrer(edge - self.edge_count)
        derivation: int = self.edge_derivation[edge]
        return derivation

    def ends(self, edge: int) -> tuple[int, int]:
        """Return the two ends of a step of a walk, an edge or a reference."""
        if edge >= self.edge_count:
            return self.referred(edge - self.edge_count), self.referring_rows(edge - self.edge_count)
        return self.edge_source[edge], self.edge_target[edge]

    # Derivations.

    def makers(self, dataset: int) -> list[int]:
        """The derivations that stand of a dataset."""
        offsets = self.arrays["maker"]
        return self.arrays["maker_derivation"][offsets[dataset] : offsets[dataset + 1]].tolist()

    def target(self, derivation: int) -> int:
        """The dataset that a derivation makes."""
        dataset: int = self.arrays["derivation_target"][derivation]
        return dataset

    def mode(self, derivation: int) -> str:
        """Return the mode of a derivation: ``replace``, ``append`` and so on."""
        return MODES[self.arrays["derivation_mode"][derivation]]

    def whole(self, derivation: int) -> int:
        """1 if the dataset stands and falls with it, 2 if it makes or removes rows of it, 0 if only columns."""
        code: int = self.arrays["derivation_whole"][derivation]
        return code

    def outputs(self, derivation: int) -> list[int]:
        """The columns that a derivation puts out."""
        offsets = self.arrays["output"]
        return self.arrays["output_node"][offsets[derivation] : offsets[derivation + 1]].tolist()

    def is_condition(self, derivation: int) -> bool:
        """Return whether a derivation only says what rows must be: a foreign key, a policy, a trigger.

        A statement that makes a table as well does not fail with it.
        """
        return self.mode(derivation) == "declare" and not self.outputs(derivation)

    def same_statement(self, derivation: int) -> list[int]:
        """All derivations of the statement that said this one."""
        offsets, number = self.arrays["statement"], self.arrays["derivation_statement"][derivation]
        return self.arrays["statement_derivation"][offsets[number] : offsets[number + 1]].tolist()

    def field(self, derivation: int, name: str) -> str | None:
        """A text of a derivation's statement (``file``, ``dialect`` …) or its ``status``."""
        return self.string(self.arrays[f"derivation_{name}"][derivation])

    def statement(self, derivation: int) -> Statement:
        """The evidence behind a derivation."""
        texts = {
            name: self.field(derivation, name) or ""
            for name in ("fingerprint", "kind", "dialect", "file", "source", "how", "text")
        }
        optional = {
            name: self.field(derivation, name) for name in ("session", "run", "principal", "first_seen", "last_seen")
        }
        return Statement(
            **texts,
            session=optional["session"],
            run=optional["run"],
            principal=optional["principal"],
            first_seen=optional["first_seen"],
            last_seen=optional["last_seen"],
            line=self.arrays["derivation_line"][derivation],
            count=self.arrays["derivation_count"][derivation],
            min_group=self.arrays["derivation_min_group"][derivation] or None,
            min_group_of=split_counted(self.field(derivation, "min_group_of")),
            places=self.field(derivation, "places"),
            literals=self.field(derivation, "literals"),
        )

    def diagnostics(self, derivation: int) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of a derivation."""
        offsets = self.arrays["diagnostic"]
        numbers = self.arrays["diagnostic_json"][offsets[derivation] : offsets[derivation + 1]]
        found = [json.loads(self.text(n)) for n in numbers]
        return tuple(Diagnostic(**{**item, "candidates": tuple(item["candidates"])}) for item in found)

    def datasets(self, *, hidden: bool = False) -> Iterator[int]:
        """Datasets in the order of their names; those that no short name leads to only on request."""
        return (d for d in range(self.dataset_count) if hidden or not self.is_hidden(d))


def _check_below(container: int, field: int) -> None:
    """Check that the container of a field comes before it; if it does not, following containers may never end."""
    if container >= field:
        raise IntegrityError(
            f"The index has field {field} in {container}, which comes after it", code="store.corrupt-index"
        )
