"""Classes that unknown columns may have: ``dataset.?`` stands for these columns, and unknown is not absent.

``create table share.a as select * from crm.u`` copies a column ``email`` if ``crm.u`` has one, whether or not anybody
says so. Where a dataset's columns are not all known, what ``classify`` says of a column that may be among them is said
of ``crm.u.?``, in the mode ``unknown``. What cannot be among them:

    a column that is known      it has its own node, and the class for certain
    what every * leaves out     ``select * except (email)``; of a name without wildcards

A pattern names columns of the dataset; that a column which is not known has a field of that name is not guessed at.

What is opaque altogether may hold any class, in all of its columns, whatever it is called and wherever it lies, for its
rows come from tables that nobody here sees. It is told by what the graph says: nothing leads into the dataset, and

    it is a call            ``exec(crm.get_users)``, ``openquery(server)``, ``crm.f(…)``: what another server, a
                            procedure or a function returns that nobody has shown
    it is a function        of the kind ``function``, and no statement says what it reads
    its making is opaque    the status of what makes it: a view without a definition, a model whose code is not there

A table function that makes rows of its arguments (``generate_series``, ``unnest``, FLATTEN) is no dataset: its
arguments lead to what reads it, with their classes. A table or a file that nothing makes is known by its name, and
``classify`` says what is in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from govtool.arrays.numpy_threads import np
from govtool.arrays.sets import distinct
from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind
from govtool.names import split_name
from govtool.policy.classes.dataset_facts import DatasetFacts
from govtool.policy.classes.taints import Seeds
from govtool.policy.files.terms import Classify, Metadata
from govtool.query.selection.patterns import Pattern, Patterns

Array = np.ndarray[Any, np.dtype[Any]]
_EXCEPT = "star-unresolved: except "
"""The prefix of the reason of a * that leaves columns out; see ``govtool.capture.sql.folding.emit``."""
_ANY = ""
"""A name that may be any."""
CALLS = frozenset({"openquery", "openrowset", "opendatasource", "exec", "caller"})
"""Functions that make rows elsewhere, if nothing in the call tells which; a table of such a name has no quotes."""
_PART = r'(?:[\w$]+|""[^"]*"")'
_CALL = re.compile(rf"{_PART}(?:\.{_PART})*\(.*\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PossibleClasses:
    """The possible classes of columns that are not known."""

    seeds: Seeds = field(default_factory=lambda: Seeds.of({}))
    """The nodes ``dataset.?`` and the classes that may be among their columns."""
    stops: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Edges that leave all columns out that may give a class, and those classes."""
    opaque: frozenset[int] = frozenset()
    """Datasets whose rows come from tables that are not known."""

    def at(self, index: Index, places: Array) -> Seeds:
        """Those of ``seeds`` at some places, bool[datasets]."""
        return self.seeds.chosen(places[np.asarray(index.node_dataset)[self.seeds.nodes]])


def possible_classes(
    index: Index, classify: Iterable[Classify], metadata: Iterable[Metadata], places: DatasetFacts
) -> PossibleClasses:
    """Return the classes that ``classify`` may give to columns that are not known.

    Args:
        index: The graph.
        classify: The classifications of the policies.
        metadata: Tags by patterns.
        places: Tags by name.
    """
    nodes = [n for n in np.asarray(index.arrays["unknown"]).tolist() if not index.is_hidden(index.node_dataset[n])]
    opaque = _opaque(index, nodes)
    if not nodes and not opaque:
        return PossibleClasses()
    facts = tuple(metadata)
    items = [_Item(one, facts, index.paths_root) for one in classify]
    left_out = _left_out(index, nodes)
    every = {item.one.class_ for item in items}
    found: dict[int, set[str]] = {}
    if every:
        found = {node: set(every) for dataset in sorted(opaque) for node in index.columns(dataset)}
    names: dict[str, set[str]] = {}
    for node in nodes:
        dataset = index.node_dataset[node]
        known = {split_name(index.path(n))[0] for n in index.columns(dataset) if n != node} | left_out[node]
        for item in items:
            may = item.may_name(index.dataset_name(dataset), places.unseen(dataset, item.one.tags), known)
            if may:
                found.setdefault(node, set()).add(item.one.class_)
                names.setdefault(item.one.class_, set()).update(may)
    return PossibleClasses(
        Seeds.of({n: tuple(c) for n, c in found.items()}), _stops(index, nodes, names, opaque), opaque
    )


def _opaque(index: Index, unknown: Iterable[int]) -> frozenset[int]:
    """Visible datasets that are opaque altogether; of those that are calls not all columns are known."""
    a = index.arrays
    base, backward = np.asarray(index.dataset_base), np.asarray(index.backward)
    alone = backward[base[1:]] == backward[base[:-1]]
    functions = [kind for kind in distinct(np.asarray(a["dataset_kind"])).tolist() if index.text(kind) == "function"]
    found = set(np.flatnonzero(alone & np.isin(a["dataset_kind"], functions)).tolist())
    opaque = [s for s in distinct(np.asarray(a["derivation_status"])).tolist() if index.text(s) == "opaque"]
    made = np.asarray(a["derivation_target"])[np.isin(a["derivation_status"], opaque)]
    found.update(made[alone[made]].tolist())
    for node in unknown:
        dataset = index.node_dataset[node]
        if alone[dataset] and is_call(index.dataset_name(dataset)):
            found.add(dataset)
    return frozenset(dataset for dataset in found if not index.is_hidden(dataset))


def is_call(dataset: str) -> bool:
    """Return whether a dataset is the result of a call: ``"name(what is called)"``, or one of ``CALLS``.

    >>> is_call('"exec(crm.get_users)"'), is_call('"crm.get_users(…)"'), is_call('"openrowset"')
    (True, True, True)
    >>> is_call("exec"), is_call('"exec.csv"'), is_call('"s3://lake/users (1).csv"'), is_call('"users(1)/a"')
    (False, False, False, False)
    """
    namespace, _, quoted = dataset.partition('"')
    name = quoted.removesuffix('"')
    if name == quoted or (namespace and not namespace.endswith("/")):
        return False
    return name in CALLS or _CALL.fullmatch(name) is not None


class _Item:
    """One classification, made ready for the question which columns of a dataset it may name."""

    def __init__(self, one: Classify, metadata: Iterable[Metadata], root: str) -> None:
        self.one = one
        tagged = [text for item in metadata if set(item.tags) & set(one.tags) for text in item.columns]
        every = [Pattern(text, root) for text in (*one.columns, *tagged)]
        self.regex = any(p.is_regex for p in every)
        self.heads = [head for p in every if not p.is_regex for head in _heads(split_name(p.text), root)]
        whole = [p.text for p in every if not p.is_regex and split_name(p.text)[-1] == "**"]
        self.whole = Patterns(whole, root)
        self.except_ = Patterns(one.except_, root)

    def may_name(self, dataset: str, tagged: Iterable[str | None], known: Container[str]) -> set[str]:
        """The names that columns which are not known may have; ``_ANY`` for any."""
        found = {_ANY if path is None else split_name(path)[0] for path in tagged}
        found.update(name for head, name in self.heads if head.matches(dataset))
        if self.regex or (self.whole and self.whole.match(f"{dataset}.?")):
            found.add(_ANY)
        return {n for n in found if n not in known and not self._excepts(dataset, n or "?")}

    def _excepts(self, dataset: str, name: str) -> bool:
        return any(p.matches(name if p.is_regex else f"{dataset}.{name}") for p in self.except_.items)


def _heads(pattern: list[str], root: str = "") -> list[tuple[Pattern, str]]:
    """Split a glob at each place between a dataset's name and a column's: the column's name, or ``_ANY``.

    >>> [(head.text, name) for head, name in _heads(["crm", "**", "email"])]
    [('crm.**', 'email'), ('crm', 'email')]
    """
    found = []
    for cut in range(1, len(pattern)):
        first = pattern[cut]
        if first == "**":  # which may be nothing, and is left out of the next head
            continue
        name = _ANY if "*" in first or "?" in first else first
        found.append((Pattern(".".join(pattern[:cut]), root), name))
        if cut > 1 and pattern[cut - 1] == "**":
            found.append((Pattern(".".join(pattern[: cut - 1]), root), name))
    return found


def _left_out(index: Index, nodes: list[int]) -> dict[int, set[str]]:
    """For each node the names that no statement brings to it: every * on every way leaves them out."""
    into = {n: [(index.edge_source[e], _except(index, e)) for e in index.in_edges(n)] for n in nodes}
    found: dict[int, set[str]] = {n: set() for n in nodes if not into[n]}
    changed = True
    while changed:  # what is not in ``found`` yet may be in a circle, and then has what its other ways have
        changed = False
        for node, every in into.items():
            ways = [out | found.get(source, set()) for source, out in every if source in found or source not in into]
            left = set.intersection(*ways) if ways else None
            if left is not None and left != found.get(node):
                found[node] = left
                changed = True
    return {node: found.get(node, set()) for node in nodes}


def _except(index: Index, edge: int) -> set[str]:
    """The columns that the * of an edge leaves out."""
    if index.kind(edge) is not EdgeKind.OPAQUE:
        return set()
    reason = index.reason(edge) or ""
    return set(reason.removeprefix(_EXCEPT).split(", ")) if reason.startswith(_EXCEPT) else set()


def _stops(
    index: Index, nodes: Iterable[int], names: Mapping[str, set[str]], opaque: Collection[int]
) -> dict[int, frozenset[str]]:
    """True if a name that is left out stops the class; an opaque dataset may hold a class by any name."""
    found: dict[int, frozenset[str]] = {}
    unnamed: set[int] | None = None
    for node in nodes:
        for edge in index.in_edges(node):
            out = _except(index, edge)
            stopped = frozenset(name for name, may in names.items() if may <= out)
            if not out or not stopped:
                continue
            unnamed = _reached_from(index, opaque) if unnamed is None else unnamed
            if index.node_dataset[index.edge_source[edge]] not in unnamed:
                found[edge] = stopped
    return found


def _reached_from(index: Index, datasets: Iterable[int]) -> set[int]:
    """Datasets that edges of any kind lead to from some datasets, and these."""
    target, of = np.asarray(index.edge_target), np.asarray(index.node_dataset)
    found = set(datasets)
    stack = sorted(found)
    while stack:
        dataset = stack.pop()
        edges = index.forward[index.dataset_base[dataset]], index.forward[index.dataset_base[dataset + 1]]
        for other in distinct(of[target[edges[0] : edges[1]]]).tolist():
            if other not in found:
                found.add(other)
                stack.append(other)
    return found
