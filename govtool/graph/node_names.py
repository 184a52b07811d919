"""Names of datasets and columns in an index: from numbers to names, and from names to numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from govtool.arrays.suffix import alike, places_ending
from govtool.graph.codes import ELIDED, HIDDEN
from govtool.model.derivation import ROWS, ColumnRef


class NodeNames:
    """The part of ``govtool.graph.index.Index`` that knows datasets and nodes, and no edges; its arrays are there."""

    arrays: dict[str, memoryview]
    node_dataset: memoryview
    dataset_base: memoryview
    dataset_flags: memoryview
    dataset_count: int
    _string: memoryview
    _text: memoryview
    _node_path: memoryview
    _dataset_name: memoryview
    _unknown: memoryview

    def string(self, number: int) -> str | None:
        """The text of a string id."""
        return self.text(number) if number else None

    def text(self, number: int) -> str:
        """The text of a string id; the absent one is empty."""
        return str(self._text[self._string[number] : self._string[number + 1]], "utf-8")

    def dataset_name(self, dataset: int) -> str:
        """The canonical id of a dataset."""
        return self.text(self._dataset_name[dataset])

    def dataset_kind(self, dataset: int) -> str:
        """``table``, ``view`` …; ``external`` if no statement makes it."""
        return self.text(self.arrays["dataset_kind"][dataset])

    def is_elided(self, dataset: int) -> bool:
        """Return whether answers pass through it: temporary, dropped, or an ended generation of a script's table."""
        return bool(self.dataset_flags[dataset] & ELIDED)

    def is_hidden(self, dataset: int) -> bool:
        """Return whether no short name leads to it."""
        return bool(self.dataset_flags[dataset] & HIDDEN)

    def column_count(self, dataset: int) -> int:
        """The number of its top-level columns."""
        count: int = self.arrays["dataset_columns"][dataset]
        return count

    def columns(self, dataset: int) -> range:
        """Its columns' nodes, fields below columns included, and ``?`` if not all of them are known."""
        return range(self.dataset_base[dataset] + 1, self.dataset_base[dataset + 1])

    def rows(self, dataset: int) -> int:
        """The node of its row set."""
        return self.dataset_base[dataset]

    def is_rows(self, node: int) -> bool:
        """Return whether a node is a row set."""
        return self.dataset_base[self.node_dataset[node]] == node

    def is_unknown(self, node: int) -> bool:
        """Return whether a node stands for the columns of its dataset that are not known (``dataset.?``)."""
        at = bisect_left(self._unknown, node)
        return at < len(self._unknown) and self._unknown[at] == node

    def path(self, node: int) -> str:
        """The path of a node: a column path, or ``*``."""
        return self.text(self._node_path[node])

    def name(self, node: int) -> str:
        """The canonical text of a node, ``dataset.path``."""
        return f"{self.dataset_name(self.node_dataset[node])}.{self.path(node)}"

    def ref(self, node: int) -> ColumnRef:
        """A node as a reference."""
        return ColumnRef(self.dataset_name(self.node_dataset[node]), self.path(node))

    def type(self, node: int) -> str | None:
        """The type of a column, as declared or as its definition has it."""
        return self.string(self.arrays["node_type"][node])

    def is_declared(self, node: int) -> bool:
        """Return whether a declaration (not a definition) fixes the column's type."""
        return bool(self.arrays["node_declared"][node])

    def find_dataset(self, name: str) -> int | None:
        """The dataset of exactly this id."""
        low = bisect_left(range(self.dataset_count), name, key=self.dataset_name)
        found: int | None = None
        while low < self.dataset_count and self.dataset_name(low) == name:
            if not self.is_hidden(low):
                return low
            found = low if found is None else found
            low += 1
        return found

    def find_column(self, dataset: int, path: str) -> int | None:
        """The node of a path (``*`` for the row set) in a dataset."""
        if path == ROWS:
            return self.rows(dataset)
        columns = self.columns(dataset)
        at = bisect_left(columns, path, key=self.path)
        return columns[at] if at < len(columns) and self.path(columns[at]) == path else None

    def find(self, ref: ColumnRef) -> int | None:
        """The node of a reference."""
        dataset = self.find_dataset(ref.dataset)
        return None if dataset is None else self.find_column(dataset, ref.path)

    def ending_datasets(self, parts: Sequence[str], limit: int) -> list[int]:
        """Datasets whose name ends in the parts, in the order of their suffix keys."""
        order = self.arrays["dataset_suffix"]
        places = places_ending(len(order), lambda i: self.dataset_name(order[i]), parts)
        return [order[i] for i, _ in zip(places, range(limit), strict=False)]

    def ending_columns(self, parts: Sequence[str], limit: int) -> list[int]:
        """Nodes whose column path ends in the parts, in the order of the paths' suffix keys."""
        order, offsets, nodes = (self.arrays[name] for name in ("path_suffix", "path", "path_node"))
        found: list[int] = []
        for i in places_ending(len(order), lambda i: self.text(order[i]), parts):
            found += nodes[offsets[i] : offsets[i + 1]][:limit].tolist()
            if len(found) >= limit:
                break
        return found[:limit]

    def name_pool(self, most: int, like: Sequence[str] = ()) -> list[int]:
        """The visible datasets, or those whose names have most in common with what may have been meant."""
        found = [d for d in range(self.dataset_count) if not self.is_hidden(d)]
        return found if len(found) <= most else alike(found, self.dataset_name, like, most)

    def path_pool(self, most: int, like: Sequence[str] = ()) -> dict[str, int]:
        """Column paths, each with its first node; likewise."""
        order, offsets, nodes = (self.arrays[name] for name in ("path_suffix", "path", "path_node"))
        found: Sequence[int] = range(len(order))
        if len(found) > most:
            found = alike(found, lambda i: self.text(order[i]), like, most)
        return {self.text(order[i]): nodes[offsets[i]] for i in found}
