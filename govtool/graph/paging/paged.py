"""An index of which only some pages are here: it answers as the whole one does, and reads pages as it needs them.

Its arrays (``paged_arrays``) fetch the page that an item is in. Where a question turns out to touch many
pages, or asks for an array that pages do not have, the whole index is brought here instead, and the object becomes a
plain ``Index``: numbers mean the same in both, so nobody notices.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MethodType
from typing import Any

from govtool.arrays.paged import GraphPage, PagedArray, PagedOffsets
from govtool.arrays.pages import in_order, unpack
from govtool.errors import IntegrityError
from govtool.graph.index import Index
from govtool.graph.paging import pages
from govtool.graph.paging.paged_arrays import PagedArrays, PagedDerivations, PagedEdges, PagedLabels
from govtool.graph.paging.pages import DERIVATION_NUMBERS, DERIVATION_TEXTS, Root
from govtool.model.derivation import HIDDEN as UNKNOWN
from govtool.model.derivation import ROWS
from govtool.model.diagnostic import Diagnostic

MOST = 96
"""Pages that are read before the whole index is brought here instead."""

Read = Callable[[Sequence[int]], Mapping[int, bytes]]
"""The verified bytes of pages, by number."""


class PagedIndex(Index):
    """See the module.

    Args:
        root: The table of pages.
        read: Gives pages. What it raises is passed on, save an IntegrityError, which brings the whole index.
        whole: Gives the whole index's buffer.
        most: Pages to read before that is asked for.
    """

    @property
    def is_paged(self) -> bool:
        """See ``Index``."""
        return not self.is_whole

    def __init__(self, root: Root, read: Read, whole: Callable[[], Any], most: int = MOST) -> None:
        self.root = root
        self._most = most
        self.meta = dict(root.meta)
        self._read = read
        self._fetch_whole = whole
        self._pages: dict[int, GraphPage] = {}
        self._others: dict[int, tuple[dict[str, tuple[int, memoryview]], bytes]] = {}
        self._texts: dict[int, str] = {}
        self._slots: dict[int, tuple[GraphPage, int]] = {}
        self._ends: dict[int, int] = {}
        self.entering: dict[int, tuple[GraphPage, int]] = {}
        """Edges that `in_edges` gave: where the second copy of each is."""
        self.home: dict[int, tuple[int, int | None]] = {}
        """Derivations that were met: a node of what each makes, or (-1, dataset)."""
        self.labels: dict[int, tuple[int, int]] = {}
        self.is_whole = False
        self.node_count, self.edge_count = root.counts["node"], root.counts["edge"]
        self.dataset_count = root.counts["dataset"]
        self.arrays = PagedArrays(self)
        for axis, names in pages.ARRAYS.items():
            self.arrays.update(
                {name: (PagedEdges if axis == "edge" else PagedArray)(self, name, axis) for name in names}
            )
        for axis, names in pages.OFFSETS.items():
            self.arrays.update({name: PagedOffsets(self, name, axis) for name in names})
        for name in (*DERIVATION_NUMBERS, *DERIVATION_TEXTS):
            self.arrays[f"derivation_{name}"] = PagedDerivations(self, f"derivation_{name}")
        for name in ("label_functions", "label_reason"):
            self.arrays[name] = PagedLabels(self, name, "edge")
        self._name_arrays()

    def resident(self) -> Index:
        """Bring the whole index here, and be it from now on."""
        if not self.is_whole:
            buffer = self._fetch_whole()
            self.is_whole = True
            Index.__init__(self, buffer)
            for name in _ANSWERS:
                self.__dict__[name] = MethodType(getattr(Index, name), self)
        return self

    def bring(self) -> dict[str, Any]:
        """Bring all arrays here."""
        return self.resident().arrays

    # Pages.

    def length(self, axis: str) -> int:
        """The number of items along an axis."""
        return self.root.counts[axis]

    def page_of(self, axis: str, item: int) -> int:
        """The number of the graph page that has an item."""
        return bisect_right(self.root.first[axis], item) - 1

    def has(self, number: int) -> bool:
        """Return whether a graph page is here."""
        return number in self._pages

    def page(self, number: int) -> GraphPage | None:
        """A graph page; ``None`` if the index is whole (now)."""
        if not self.is_whole and number not in self._pages:
            self._load((number,))
        return None if self.is_whole else self._pages[number]

    def _load(self, numbers: Iterable[int]) -> None:
        """Bring graph pages here; all, if they would be too many."""
        missing = sorted(set(numbers) - self._pages.keys())
        if self.is_whole or not missing:
            return
        if len(missing) + len(self._pages) + len(self._others) > self._most:
            self.resident()
            return
        try:
            found = self._read(missing)
            for number in missing:
                self._take(number, found[number])
        except IntegrityError:
            self.resident()

    def _take(self, number: int, data: bytes) -> None:
        page = GraphPage(data, {axis: self.root.first[axis][number] for axis in pages.AXES})
        self._pages[number] = page
        texts = in_order(page.items("text"), page.text)
        self._texts.update(zip(page.items("string"), texts, strict=True))
        for slot, derivation in enumerate(page.items("maker_derivation")):
            self._slots[derivation] = (page, slot)
        for label, functions, reason in zip(
            page.items("label"), page.items("label_functions"), page.items("label_reason"), strict=True
        ):
            self.labels[label] = (functions, reason)

    def _other(self, number: int) -> tuple[dict[str, tuple[int, memoryview]], bytes] | None:
        """A detail or name page; ``None`` if the index is whole (now)."""
        if not self.is_whole and number not in self._others:
            if len(self._pages) + len(self._others) >= self._most:
                self.resident()
                return None
            try:
                self._others[number] = unpack(self._read((number,))[number])
            except IntegrityError:
                self.resident()
        return None if self.is_whole else self._others[number]

    def prefetch(self, nodes: Iterable[int]) -> None:
        """Bring what a walk is about to ask of nodes, in one go."""
        wanted = list(nodes)
        self._load({self.page_of("node", node) for node in wanted})
        if not self.is_whole:
            # The dataset of a node may begin in an earlier page.
            self._load({self.page_of("dataset", self.node_dataset[node]) for node in wanted})

    def _span(self, axis: str, low: int, high: int) -> None:
        if low < high:
            self._load(range(self.page_of(axis, low), self.page_of(axis, high - 1) + 1))

    # What ``Index`` finds by searching arrays: pages know where to look.

    def text(self, number: int) -> str:
        """See ``Index``."""
        found = self._texts.get(number)
        return self.resident().text(number) if found is None else found

    def is_rows(self, node: int) -> bool:
        """See ``Index``."""
        end = self._ends.get(node)
        return self.path(node) == ROWS if end is None else bool(end & pages.IS_ROWS)

    def is_unknown(self, node: int) -> bool:
        """See ``Index``."""
        return self.path(node) == UNKNOWN

    def container(self, node: int) -> int | None:
        """See ``Index``."""
        end = self._ends.get(node)
        if end is not None and not end & pages.NESTED:
            return None
        page = self.page(self.page_of("node", node))
        if page is None:
            return Index.container(self, node)
        nested = page.items("nested")
        at = bisect_left(nested, node)
        return page.item("nested_parent", at) if at < len(nested) and nested[at] == node else None

    def fields(self, node: int) -> list[int]:
        """See ``Index``."""
        end = self._ends.get(node)
        if not len(self.nested) or (end is not None and not end & pages.HAS_FIELDS):
            return []
        found: list[int] = []
        stack = [node]
        while stack:
            above = stack.pop()
            page = self.page(self.page_of("node", above))
            if page is None:
                return Index.fields(self, node)
            containers = page.items("container")
            low, high = bisect_left(containers, above), bisect_right(containers, above)
            below = page.items("container_child", low, high)
            if below and min(below) <= above:  # damaged: it would never end
                return self.resident().fields(node)
            found += below
            stack += below
        return sorted(found)

    def find_dataset(self, name: str) -> int | None:
        """See ``Index``."""
        names, first = self.root.names, self.root.first["dataset"]
        low = first[max(0, bisect_left(names, name) - 1)]
        high = first[bisect_right(names, name)]
        span = range(low, high)
        at = low + bisect_left(span, name, key=self.dataset_name)
        found: int | None = None
        while at < high and self.dataset_name(at) == name:
            if not self.is_hidden(at):
                return at
            found = at if found is None else found
            at += 1
        return found

    def datasets(self, *, hidden: bool = False) -> Iterator[int]:
        """See ``Index``. Whoever wants all of them wants the whole index."""
        return self.resident().datasets(hidden=hidden)

    def ending_datasets(self, parts: Sequence[str], limit: int) -> list[int]:
        """See ``Index``."""
        found: list[int] = []
        for _, numbers, _ in self._ending("datasets", parts):
            found += numbers
            if len(found) >= limit:
                break
        return found[:limit] if not self.is_whole else Index.ending_datasets(self, parts, limit)

    def ending_columns(self, parts: Sequence[str], limit: int) -> list[int]:
        """See ``Index``."""
        found: list[int] = []
        if limit > pages.NODES_OF_PATH:
            return self.resident().ending_columns(parts, limit)
        for _, numbers, _ in self._ending("paths", parts):
            found += numbers[:limit]
            if len(found) >= limit:
                break
        return found[:limit] if not self.is_whole else Index.ending_columns(self, parts, limit)

    def _ending(self, kind: str, parts: Sequence[str]) -> Iterator[pages.NameEntry]:
        """Entries of name pages whose names end in parts."""
        return pages.ending(self.root.keys[kind], parts, lambda number: self._names(kind, number))

    def _names(self, kind: str, number: int) -> list[pages.NameEntry]:
        """The entries of a name page: name, numbers, how many there are in all; none if the index is whole (now)."""
        page = self._other(self.root.name_page(kind, number))
        if page is None:
            return []
        return pages.name_entries(*page)

    def name_pool(self, most: int, like: Sequence[str] = ()) -> list[int]:
        """See ``Index``: of the pages that are here."""
        found = [d for page in self._pages.values() for d in self._starting(page) if not self.is_hidden(d)]
        return sorted(found)[:most]

    def _starting(self, page: GraphPage) -> range:
        first = page.first["dataset"]
        return range(first, first + len(page.arrays["dataset_name"][1]))

    def path_pool(self, most: int, like: Sequence[str] = ()) -> dict[str, int]:
        """See ``Index``: of the name pages that are here."""
        start = self.root.name_page("paths", 0)
        here = [number - start for number in self._others if number >= start]
        return {name: nodes[0] for n in sorted(here) for name, nodes, _ in self._names("paths", n)[:most]}

    # Edges.

    def out_edges(self, node: int) -> range:
        """See ``Index``."""
        edges = range(self.forward[node], self.forward[node + 1])
        self._span("edge", edges.start, edges.stop)
        return edges

    def in_edges(self, node: int) -> list[int]:
        """See ``Index``."""
        low, high = self.backward[node], self.backward[node + 1]
        self._span("back", low, high)
        found: list[int] = []
        while low < high:
            page = self.page(self.page_of("back", low))
            if page is None:
                return Index.in_edges(self, node)
            start = low - page.first["back"]
            edges = page.items("backward_edge", start, start + high - low)
            for place, edge in enumerate(edges, start):
                self.entering[edge] = (page, place)
                self._ends[page.item("back_edge_source", place)] = page.item("back_end", place)
            found += edges
            low += len(edges)
        return found

    # References.

    def references(self, node: int) -> Sequence[int]:
        """See ``Index``."""
        page = self.page(self.page_of("node", node))
        if page is None:
            return Index.references(self, node)
        named = page.items("reference")
        low, high = bisect_left(named, node), bisect_right(named, node)
        for place in range(low, high):
            self.home.setdefault(page.item("reference_derivation", place), (page.item("reference_rows", place), None))
        first = page.first["reference"]
        return range(first + low, first + high)

    # Derivations.

    def slot(self, derivation: int) -> tuple[GraphPage, int] | None:
        """Return the slot of a derivation; ``None`` if the index is whole (now)."""
        if not self.is_whole and derivation not in self._slots:
            node, dataset = self.home.get(derivation, (-1, None))
            if dataset is None and node >= 0:
                dataset = self.node_dataset[node]
            if dataset is None:
                self.resident()
                return None
            self._find(derivation, dataset)
        return None if self.is_whole else self._slots[derivation]

    def _find(self, derivation: int, dataset: int) -> None:
        low, high = self.arrays["maker"][dataset], self.arrays["maker"][dataset + 1]
        made = self.arrays["maker_derivation"]
        at = low + bisect_left(range(low, high), derivation, key=lambda i: made[i])
        if not self.is_whole and (at >= high or made[at] != derivation or derivation not in self._slots):
            self.resident()

    def makers(self, dataset: int) -> list[int]:
        """See ``Index``."""
        low, high = self.arrays["maker"][dataset], self.arrays["maker"][dataset + 1]
        self._span("maker", low, high)
        return Index.makers(self, dataset)

    def outputs(self, derivation: int) -> list[int]:
        """See ``Index``."""
        place = self.slot(derivation)
        if place is None:
            return Index.outputs(self, derivation)
        page, slot = place
        return page.items("output_node", page.item("output", slot), page.item("output", slot + 1))

    def same_statement(self, derivation: int) -> list[int]:
        """See ``Index``."""
        place = self.slot(derivation)
        if place is None:
            return Index.same_statement(self, derivation)
        page, slot = place
        low, high = page.item("same", slot), page.item("same", slot + 1)
        found = page.items("same_derivation", low, high)
        for other, target in zip(found, page.items("same_target", low, high), strict=True):
            self.home.setdefault(other, (-1, target))
        return found

    def field(self, derivation: int, name: str) -> str | None:
        """See ``Index``."""
        if name == "text" and not self.is_whole:
            details = self._details(derivation)
            if details is not None:
                return details[0] or None
        return Index.field(self, derivation, name)

    def diagnostics(self, derivation: int) -> tuple[Diagnostic, ...]:
        """See ``Index``."""
        details = self._details(derivation)
        if details is None:
            return Index.diagnostics(self, derivation)
        found = [json.loads(text) for text in details[1:]]
        return tuple(Diagnostic(**{**item, "candidates": tuple(item["candidates"])}) for item in found)

    def _details(self, derivation: int) -> list[str] | None:
        """The text of a derivation and its diagnostics; ``None`` if the index is whole (now)."""
        place = self.slot(derivation)
        if place is None:
            return None
        at = place[0].first["maker"] + place[1]
        number = bisect_right(self.root.first["detail"], at) - 1
        found = self._other(self.root.graph + number)
        if found is None:
            return None
        return pages.details(*found, at - self.root.first["detail"][number])


_ANSWERS = tuple(
    name for name in PagedIndex.__dict__ if hasattr(Index, name) and not name.startswith("_") and name != "is_paged"
)
"""Questions that pages answer in their own way; once the index is whole, ``Index`` answers."""
