"""The manifest: which fragments are live at a commit, in a slot of bounded size.

A manifest is a sequence of entries, oldest first: *add* a fragment, *mark* a source as having spoken (it may say
nothing), *retract* everything that a source said before this point. The newest entries, about `TAIL`, are inlined in
the slot; when they are more, the commit folds them into one immutable *node* (content addressed, under ``manifest/``)
and keeps a reference. When a level has `FAN` references, a later commit folds those into a node of the next level,
without reading them. So a slot holds some `TAIL` entries and ``FAN`` references for each of ``log(commits)`` levels,
and a small commit writes at most one node.

Nothing here does I/O: folding returns the bytes of the nodes to be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from govtool.errors import IntegrityError
from govtool.store.codec import FORMAT, PACKED, digest, seal, unseal

TAIL = 32
"""A tail of more entries than this is folded into a node."""
FAN = 32
"""A level with this many references is folded into one node of the next level."""
LEAF = 1024
"""Most entries in one node; only a large commit has as many."""
_SOURCES = 8
_SOURCES_TEXT = 256


class Entry(NamedTuple):
    """One line of a manifest; fields that have no meaning for its ``op`` are empty.

    ``op`` is ``+`` (add, bytes that were new to the store, so that nothing before can have added them), ``~`` (add,
    bytes that may have been there), ``=`` (mark) or ``-`` (retract).
    """

    op: str
    source: str
    batch: str = ""
    table: str = ""
    sha256: str = ""
    size: int = 0
    rows: int = 0
    pack: str = ""
    """The sha256 of the pack that the fragment is in, from byte ``offset`` on; empty: it is an object of its own."""
    offset: int = 0

    @property
    def content(self) -> tuple[str | int, ...]:
        """The content, without ``op`` and wherever it lies."""
        return self[1:7]

    @property
    def adds(self) -> bool:
        """True if this adds a fragment."""
        return self.op in ("+", "~")


class NodeRef(NamedTuple):
    """A reference to a node."""

    sha256: str
    entries: int
    """Entries below the node, dead ones included."""
    sources: tuple[str, ...] | str | None
    """The sources that it mentions; for many, a filter of them (`_filter`); ``None`` where that would let all pass."""

    @property
    def key(self) -> str:
        """The path of the node, relative to the store."""
        return node_key(self.sha256)

    def mentions(self, source: str) -> bool:
        """Return whether the node may hold something about ``source``."""
        if isinstance(self.sources, str):
            bits = _bits(source)
            return int(self.sources, 16) & bits == bits
        return self.sources is None or source in self.sources


def node_key(sha256: str) -> str:
    """The key of a manifest node."""
    return f"manifest/{sha256}.json"


class ManifestNode(NamedTuple):
    """A decoded node: either entries (a leaf) or references, oldest first."""

    entries: tuple[Entry, ...]
    children: tuple[NodeRef, ...]


class Manifest(NamedTuple):
    """The manifest of one commit."""

    tail: tuple[Entry, ...] = ()
    levels: tuple[tuple[NodeRef, ...], ...] = ()
    """``levels[0]`` refers to leaves and is newer than ``levels[1]``, and so on; each is oldest first."""

    @property
    def refs(self) -> tuple[NodeRef, ...]:
        """All references, oldest first."""
        return tuple(ref for level in reversed(self.levels) for ref in level)

    @property
    def stored(self) -> int:
        """Entries that a reader must look at, dead ones included."""
        return len(self.tail) + sum(ref.entries for level in self.levels for ref in level)

    def apply(self, retract: Iterable[str], entries: Iterable[Entry]) -> Manifest:
        """Retract sources, then append entries. Dead entries of the tail go at once; those in nodes get a *retract*."""
        tail = list(self.tail)
        levels = self.levels
        for source in dict.fromkeys(retract):
            tail = [entry for entry in tail if entry.source != source]
            levels = tuple(tuple(ref for ref in level if ref.sources != (source,)) for level in levels)
            if any(ref.mentions(source) for level in levels for ref in level):
                tail.append(Entry("-", source))
        added = tuple(dict.fromkeys(entries))
        again = {_identity(entry) for entry in added}
        tail = [entry for entry in tail if entry.op == "-" or _identity(entry) not in again]
        while levels and not levels[-1]:
            levels = levels[:-1]
        return Manifest((*tail, *added), levels)

    def folded(self, *, now: bool = True) -> tuple[Manifest, dict[str, bytes]]:
        """Fold what has become too long.

        Args:
            now: Whether this is a good moment to write a node; if not, only what has twice its length is folded.

        Returns:
            The manifest and the new nodes by sha256. A small commit gets at most one: once there is a node, the rest
            waits for a later commit, again up to twice its length.
        """
        nodes: dict[str, bytes] = {}

        def node(entries: tuple[Entry, ...], children: tuple[NodeRef, ...]) -> NodeRef:
            data = encode_node(ManifestNode(entries, children))
            sha256 = digest(data)
            nodes[sha256] = data
            below = len(entries) + sum(child.entries for child in children)
            return NodeRef(sha256, below, _mentioned(entries, children))

        tail = self.tail
        levels = list(self.levels)
        if len(tail) > (TAIL if now else 2 * TAIL):
            leaves = tuple(node(tail[start : start + LEAF], ()) for start in range(0, len(tail), LEAF))
            levels[:1] = [(*levels[0], *leaves)] if levels else [leaves]
            tail = ()
        level = 0
        while level < len(levels):
            refs = levels[level]
            while len(refs) >= (FAN if now and not nodes else 2 * FAN):
                parent = node((), refs[:FAN])
                refs = refs[FAN:]
                above = levels[level + 1] if level + 1 < len(levels) else ()
                levels[level + 1 : level + 2] = [(*above, parent)]
            levels[level] = refs
            level += 1
        return Manifest(tail, tuple(levels)), nodes

    @property
    def format(self) -> int:
        """The oldest format that can say this."""
        return _format(self.tail, self.refs)

    def to_json(self) -> dict[str, Any]:
        """Plain data for the slot."""
        return {"tail": _entries_json(self.tail), "levels": [_refs_json(level) for level in self.levels]}

    @staticmethod
    def from_json(body: Any) -> Manifest:
        """Undo `to_json`; raises KeyError, TypeError, ValueError or IndexError on anything else."""
        return Manifest(_entries(body["tail"]), tuple(_refs(level) for level in body["levels"]))


EMPTY = Manifest()


class Live:
    """The fold of entries, oldest first, into what is live."""

    __slots__ = ("_by_source",)

    def __init__(self) -> None:
        self._by_source: dict[str, dict[tuple[str, ...], Entry]] = {}

    def feed(self, entries: Iterable[Entry]) -> None:
        """Take the next entries."""
        for entry in entries:
            if entry.op == "-":
                self._by_source.pop(entry.source, None)
                continue
            by_content = self._by_source.setdefault(entry.source, {})
            key = _identity(entry)
            by_content.pop(key, None)
            by_content[key] = entry

    def entries(self, source: str | None = None) -> Iterator[Entry]:
        """Live adds and marks, of one source or of all."""
        if source is not None:
            yield from self._by_source.get(source, {}).values()
            return
        for by_content in self._by_source.values():
            yield from by_content.values()

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that say something, sorted."""
        return tuple(sorted(self._by_source))


def encode_node(node: ManifestNode) -> bytes:
    """The bytes of a node; its key is their sha256."""
    body: dict[str, Any] = {"format": _format(node.entries, node.children)}
    if node.children:
        body["children"] = _refs_json(node.children)
    else:
        body["entries"] = _entries_json(node.entries)
    return seal(body)


def decode_node(data: bytes, where: str) -> ManifestNode:
    """Read a node.

    Raises:
        IntegrityError: if it is damaged.
        FormatError: if a newer version wrote it.
    """
    body = unseal(data, where)
    try:
        return ManifestNode(_entries(body.get("entries", [])), _refs(body.get("children", [])))
    except (TypeError, ValueError, IndexError) as error:
        raise IntegrityError(f"{where} is not a manifest", location=where, hint="run govtool store fsck") from error


def _identity(entry: Entry) -> tuple[str, ...]:
    return (entry.source,) if entry.op == "=" else (entry.source, entry.table, entry.sha256)


def _mentioned(entries: Iterable[Entry], children: Iterable[NodeRef]) -> tuple[str, ...] | str | None:
    names = {entry.source for entry in entries}
    filters = 0
    for child in children:
        if child.sources is None:
            return None
        if isinstance(child.sources, str):
            filters |= int(child.sources, 16)
        else:
            names.update(child.sources)
    if not filters and len(names) <= _SOURCES and sum(map(len, names)) <= _SOURCES_TEXT:
        return tuple(sorted(names))
    return _filter(names, filters)


_FILTER_BITS = 256
_FILTER_MOST = 128
"""A filter with more bits set than this lets one name in eight pass that is not in it."""


def _filter(names: Iterable[str], bits: int = 0) -> str | None:
    """A Bloom filter (Bloom, "Space/time trade-offs in hash coding", 1970) of names, in hex."""
    for name in names:
        bits |= _bits(name)
    return None if bits.bit_count() > _FILTER_MOST else f"{bits:0{_FILTER_BITS // 4}x}"


def _bits(name: str) -> int:
    """The three bits of a name."""
    hashed = bytes.fromhex(digest(name.encode("utf-8", "surrogatepass")))
    return 1 << hashed[0] | 1 << hashed[1] | 1 << hashed[2]


def _format(entries: Iterable[Entry], refs: Iterable[NodeRef]) -> int:
    newer = any(entry.pack for entry in entries) or any(isinstance(ref.sources, str) for ref in refs)
    return PACKED if newer else FORMAT


def _entries_json(entries: Iterable[Entry]) -> list[list[Any]]:
    shown = {"-": 2, "=": 3}
    return [list(e[: shown.get(e.op, 9 if e.pack else 7)]) for e in entries]


def _entries(body: Any) -> tuple[Entry, ...]:
    return tuple(_entry(row) for row in body)


def _entry(row: Any) -> Entry:
    if len(row) <= 3:
        return Entry(str(row[0]), str(row[1]), str(row[2]) if len(row) == 3 else "")
    op, source, batch, table, sha256, size, rows, *place = row
    pack, offset = place or ("", 0)
    return Entry(
        str(op), str(source), str(batch), str(table), str(sha256), int(size), int(rows), str(pack), int(offset)
    )


def _refs_json(refs: Iterable[NodeRef]) -> list[list[Any]]:
    return [
        [ref.sha256, ref.entries, list(ref.sources) if isinstance(ref.sources, tuple) else ref.sources] for ref in refs
    ]


def _refs(body: Any) -> tuple[NodeRef, ...]:
    return tuple(
        NodeRef(str(sha256), int(entries), tuple(map(str, sources)) if isinstance(sources, list) else _checked(sources))
        for sha256, entries, sources in body
    )


def _checked(sources: Any) -> str | None:
    return None if sources is None else f"{int(sources, 16):0{_FILTER_BITS // 4}x}"
