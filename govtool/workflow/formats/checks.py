"""What a file of nodes and edges has to keep to before it is a graph; every mistake has a line and a reason."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.ranks import ranks
from govtool.errors import UsageError
from govtool.workflow import vocabulary as terms
from govtool.workflow.builder import GraphBuilder, MixedNodes
from govtool.workflow.graph import NodeId, ProvenanceGraph
from govtool.workflow.values import ABSENT, Value

MOST = (1 << 31) - 2
"""Nodes of a graph at most, and the largest number of an invocation."""
LONGEST = 65_536
"""Characters of an id, a label or a name of a module at most."""
MOST_COMPARED = 10_000
"""Ids among which near names are looked for."""
_SHOWN = 6
_ZOOMED = "zoom:"
"""How ids of invocations begin where their module is zoomed out."""
_OF_TUPLES = frozenset({terms.TIMES, terms.PLUS, terms.DELTA, terms.MONUS})
_OF_VALUES = frozenset({terms.TENSOR, terms.CONSTANT, *terms.AGGREGATES})
_NO_OPERATOR = _OF_VALUES | {terms.CELL}
"""Words that a black box of tuples can only have as the name of a function."""
_NO_VALUE = _OF_TUPLES | {terms.CONSTANT, terms.CELL}
"""Words that a black box of values can only have as the name of a function."""

_SPELLINGS = {
    terms.OPERATOR: {"plus": terms.PLUS, "times": terms.TIMES, "delta": terms.DELTA, "monus": terms.MONUS},
    terms.VALUE: {"tensor": terms.TENSOR, **{word.casefold(): word for word in sorted(_OF_VALUES)}},
}
"""Words of the graph by what may be written instead: their names, or other letters."""


@dataclass(slots=True)
class GraphFile:
    """Collects the nodes and edges of a file, and refuses the first mistake.

    Args:
        name: The name of the file, for errors.
    """

    name: str
    nodes: MixedNodes = field(default_factory=MixedNodes)
    numbers: dict[NodeId, int] = field(default_factory=dict)
    node_lines: array[int] = field(default_factory=lambda: array("q"))
    edge_lines: array[int] = field(default_factory=lambda: array("q"))
    ends: list[tuple[NodeId, NodeId, int]] = field(default_factory=list)
    invocations: set[tuple[str, int]] = field(default_factory=set)
    tokens: dict[str, int] = field(default_factory=dict)

    def refuse(self, line: int, reason: str, nearest: Sequence[str] = ()) -> NoReturn:
        """Refuse the file.

        Raises:
            UsageError: Always (``usage.graph``).
        """
        raise UsageError(reason, code="usage.graph", location=f"{self.name}:{line}", nearest=tuple(nearest))

    # nodes -----------------------------------------------------------------------------------------------------------

    def node(self, body: object, line: int) -> None:
        """Take in a node as an object of the JSON form.

        Raises:
            UsageError: It is mistaken (``usage.graph``).
        """
        if not isinstance(body, dict):
            self.refuse(line, f"a node is an object, and this is {_noun(body)}")
        id_ = self._id(body, line)
        type_ = self._type(body, line, id_)
        label = _present(type_, self._text(body.get("label"), line, f"the label of node {_shown(id_)}"), body.get("bb"))
        self._check_label(type_, label, line, id_)
        if type_ in _SPELLINGS and not body.get("bb"):
            self._check_name(type_, label, line, id_)
        kind = body.get("kind") or terms.KINDS[terms.kind_of(type_, label)]
        if kind != terms.KINDS[terms.kind_of(type_, label)]:
            self.refuse(
                line,
                f"node {_shown(id_)} of type {terms.TYPES[type_]} and label {_shown(label)}"
                f" cannot be of kind {_shown(kind)}",
            )
        module, invocation = self._invocation(body, type_, label, line, id_)
        if type_ in terms.TOKENS:
            self._check_token(label, line, id_)
        black_box = body.get("bb") if body.get("bb") is not None else False
        if not isinstance(black_box, bool):
            self.refuse(line, f"bb of node {_shown(id_)} is {_noun(black_box)}, not true or false")
        self.numbers[id_] = len(self.numbers)
        columns = self.nodes
        columns.ids.append(id_)
        columns.types.append(type_)
        columns.labels.append(label)
        columns.modules.append(module)
        columns.invocations.append(invocation)
        columns.black_boxes.append(black_box)
        columns.values.append(self._value(body, line, id_))
        self.node_lines.append(line)

    def _id(self, body: Mapping[str, Any], line: int) -> NodeId:
        id_ = body.get("id")
        if isinstance(id_, bool) or not isinstance(id_, (int, str)):
            self.refuse(line, f"the id of a node is a text or a whole number, and this is {_noun(id_)}")
        if isinstance(id_, str):
            id_ = self._text(id_, line, "the id of a node")
        other = str(id_) if isinstance(id_, int) else _as_number(id_)
        if id_ in self.numbers or other in self.numbers:
            first = self.node_lines[self.numbers[id_ if id_ in self.numbers else other]]
            self.refuse(line, f"two nodes have the id {_shown(id_)}; the first is in line {first}")
        if len(self.numbers) >= MOST:
            self.refuse(line, f"more than {MOST:,} nodes")
        return id_

    def _text(self, text: object, line: int, what: str) -> str:
        if not isinstance(text, str) or not text:
            self.refuse(line, f"{what} is {_noun(text)}, not a text" if text != "" else f"{what} is empty")
        if len(text) > LONGEST:
            self.refuse(line, f"{what} has more than {LONGEST:,} characters")
        if not _is_unicode(text):
            self.refuse(line, f"{what} has half of a surrogate pair, which is no character")
        return text

    def _type(self, body: Mapping[str, Any], line: int, id_: NodeId) -> int:
        type_ = body.get("type")
        if not isinstance(type_, str) or type_ not in terms.TYPE_NUMBERS:
            given = "no type" if type_ is None else f"the unknown type {_shown(type_)}"
            self.refuse(line, f"node {_shown(id_)} has {given}: it has to be one of {' '.join(terms.TYPES)}")
        return terms.TYPE_NUMBERS[type_]

    def _check_label(self, type_: int, label: str, line: int, id_: NodeId) -> None:
        wanted = ""
        if type_ in terms.BOUNDARY and label not in (terms.TIMES, terms.CELL):
            wanted = f"{terms.TIMES} or {terms.CELL}"
        elif type_ == terms.OPERATOR and (label in _OF_VALUES or label == terms.CELL):
            wanted = "an operator, a comparison or a function, and not that of a value"
        elif type_ == terms.OPERATOR and not _is_operator(label):
            wanted = "one of + · δ ⊖, a comparison in brackets, or the name of a function"
        elif type_ == terms.VALUE and (label in _OF_TUPLES or terms.is_guard(label)):
            wanted = "⊗, const, an aggregate or a function, and not that of a tuple"
        if wanted:
            self.refuse(
                line,
                f"node {_shown(id_)} of type {terms.TYPES[type_]} has the label {_shown(label)}: it has to be {wanted}",
            )

    def _check_name(self, type_: int, label: str, line: int, id_: NodeId) -> None:
        """Refuse the name of a function that looks like a word of the graph, unless it is marked as one."""
        if label in terms.WORDS or terms.is_guard(label) or terms.is_function(label):
            return
        words = _SPELLINGS[type_]
        near = get_close_matches(label.casefold(), words, n=1, cutoff=0.75)
        if near:
            self.refuse(
                line,
                f"node {_shown(id_)} of type {terms.TYPES[type_]} has the unknown label {_shown(label)};"
                ' a function of this name needs "bb": true, or () after its name',
                (words[near[0]],),
            )

    def _invocation(
        self, body: Mapping[str, Any], type_: int, label: str, line: int, id_: NodeId
    ) -> tuple[str | None, int]:
        module, invocation = body.get("module") or None, body.get("inv")
        if module is not None:
            module = self._text(module, line, f"the module of node {_shown(id_)}")
        if invocation is None:
            invocation = 0
        if isinstance(invocation, bool) or not isinstance(invocation, int) or not 0 <= invocation <= MOST:
            self.refuse(line, f"inv of node {_shown(id_)} is not a whole number from 1: {_shown(invocation)}")
        if type_ in terms.TOKENS and (module is not None or invocation):
            self.refuse(line, f"node {_shown(id_)} is a source record ({terms.TYPES[type_]}), and belongs to no module")
        if type_ in (terms.INVOCATION, terms.ZOOM, *terms.BOUNDARY):
            self._check_invocation(module, invocation, type_, label, line, id_)
        if module is not None and "#" in module:
            self.refuse(line, f"{_shown(module)} names an invocation, not a module: give the number as inv")
        return module, invocation

    def _check_token(self, token: str, line: int, id_: NodeId) -> None:
        first = self.tokens.setdefault(token, len(self.numbers))
        if first < len(self.numbers):
            self.refuse(
                line,
                f"two records have the token {_shown(token)}: node {_shown(id_)},"
                f" and node {_shown(self.nodes.ids[first])} in line {self.node_lines[first]}",
            )

    def _check_invocation(
        self, module: str | None, invocation: int, type_: int, label: str, line: int, id_: NodeId
    ) -> None:
        if module is None or not invocation:
            self.refuse(
                line,
                f"node {_shown(id_)} of type {terms.TYPES[type_]} lacks {'its module' if module is None else 'inv'}",
            )
        if type_ in (terms.INVOCATION, terms.ZOOM) and label != module:
            self.refuse(
                line,
                f"node {_shown(id_)} of type {terms.TYPES[type_]} has the label {_shown(label)}:"
                f" it has to be that of its module, {_shown(module)}",
            )
        if type_ == terms.INVOCATION:
            if (module, invocation) in self.invocations:
                self.refuse(line, f"two nodes of type m are of the invocation {module}#{invocation}")
            self.invocations.add((module, invocation))

    def _value(self, body: Mapping[str, Any], line: int, id_: NodeId) -> Value:
        if "value" not in body:
            return ABSENT
        value, type_ = body["value"], body.get("value_type")
        try:
            if type_ == "decimal" and isinstance(value, str):
                return Decimal(value)
            if type_ == "float" and isinstance(value, str):
                return float(value)
            if type_ == "json" and isinstance(value, str):
                value, type_ = json.loads(value), None
        except (InvalidOperation, ValueError, RecursionError):
            type_ = value
        if type_ is not None:
            self.refuse(line, f"node {_shown(id_)} has a value of an unknown type: {_shown(type_)}")
        if not _is_unicode(value):
            self.refuse(line, f"the value of node {_shown(id_)} has half of a surrogate pair, which is no character")
        return value

    # edges -----------------------------------------------------------------------------------------------------------

    def edge(self, body: object, line: int) -> None:
        """Take in an edge, ``[source, target]`` or ``[source, target, side]``. Nodes may come later in the file.

        Raises:
            UsageError: It is mistaken (``usage.graph``).
        """
        if not isinstance(body, list) or len(body) not in (2, 3):
            self.refuse(line, 'an edge is [source, target] or [source, target, "left"|"right"]')
        for end in body[:2]:
            if isinstance(end, bool) or not isinstance(end, (int, str)):
                self.refuse(line, f"an edge has an end that is {_noun(end)}, not the id of a node")
        side = body[2] if len(body) == 3 else None
        if side not in terms.SIDES:
            self.refuse(line, f"an edge has the side {_shown(side)}: left or right")
        self.ends.append((body[0], body[1], terms.SIDES.index(side)))
        self.edge_lines.append(line)

    def _known(self, id_: NodeId) -> int | None:
        found = self.numbers.get(id_)
        if found is None:
            other = str(id_) if isinstance(id_, int) else _as_number(id_)
            found = self.numbers.get(other)
        return found

    def graph(self) -> ProvenanceGraph:
        """Return the graph.

        Raises:
            UsageError: An edge leads to a node that there is not or to one that has no inputs, or edges form a cycle
                (``usage.graph``).
        """
        source, target, side = self._edges()
        self._check_zoom_ids()
        builder = GraphBuilder()
        builder.mixed(self.nodes)
        builder.edges(source, target, side)
        self._check_circles(source, target)
        return builder.build()

    def _edges(self) -> tuple[Any, Any, Any]:
        source, target, side = array("q"), array("q"), array("B")
        has_left: set[int] = set()
        for place, (first, second, which) in enumerate(self.ends):
            ends = self._known(first), self._known(second)
            if ends[0] is None or ends[1] is None:
                missing = _shown(first if ends[0] is None else second)
                ids = [_shown(each) for each in self.nodes.ids[:MOST_COMPARED]]
                self.refuse(
                    self.edge_lines[place],
                    f"an edge of a node that is not in the file: {missing}",
                    get_close_matches(missing, ids),
                )
            self._check_edge(ends[1], which, has_left, self.edge_lines[place])
            source.append(ends[0])
            target.append(ends[1])
            side.append(which)
        return _array(source, np.int64), _array(target, np.int64), _array(side, np.uint8)

    def _check_zoom_ids(self) -> None:
        """Refuse a node that has the id which an invocation has where its module is zoomed out."""
        columns = self.nodes
        places = {each: place for each, place in self.numbers.items() if str(each).startswith(_ZOOMED)}
        if not places:
            return
        pairs = zip(columns.modules, columns.invocations, strict=True)
        zoomed = {f"{_ZOOMED}{module}#{number}" for module, number in set(pairs) if module is not None}
        for id_, place in places.items():
            if id_ in zoomed and columns.types[place] != terms.ZOOM:
                self.refuse(
                    self.node_lines[place],
                    f"node {_shown(id_)} has the id that an invocation gets where its module is zoomed out",
                )

    def _check_edge(self, target: int, side: int, has_left: set[int], line: int) -> None:
        type_, label = self.nodes.types[target], self.nodes.labels[target]
        if type_ in terms.SOURCES or (type_ == terms.VALUE and label == terms.CONSTANT):
            what = terms.CONSTANT if type_ == terms.VALUE else terms.TYPES[type_]
            self.refuse(
                line, f"an edge into node {_shown(self.nodes.ids[target])}: nodes of type {what} have no inputs"
            )
        if not side:
            return
        is_sided = label == terms.MONUS or terms.is_guard(label)
        if type_ != terms.OPERATOR or not is_sided:
            self.refuse(
                line,
                f"an edge into node {_shown(self.nodes.ids[target])} has a side,"
                " and that is no difference and no comparison",
            )
        if side == terms.LEFT and label == terms.MONUS:
            if target in has_left:
                self.refuse(line, f"the difference {_shown(self.nodes.ids[target])} has two left operands")
            has_left.add(target)

    def _check_circles(self, source: Any, target: Any) -> None:
        rank = ranks(source, target, len(self.numbers))
        on_circle = np.flatnonzero(rank < 0)
        if not len(on_circle):
            return
        circle = _circle(source, target, int(on_circle[0]), rank)
        pairs = set(zip(circle, [*circle[1:], circle[0]], strict=True))
        on_it = np.flatnonzero(np.isin(source, circle) & np.isin(target, circle)).tolist()
        closing = max(place for place in on_it if (int(source[place]), int(target[place])) in pairs)
        names = [_shown(self.nodes.ids[node]) for node in [*circle, circle[0]]]
        if len(names) > _SHOWN:
            names = [*names[: _SHOWN - 1], "…", names[-1]]
        self.refuse(self.edge_lines[closing], f"edges form a cycle: {' → '.join(names)}")


def _array(values: array[int], dtype: Any) -> Any:
    """The numbers as a numpy array; numpy takes no empty buffers."""
    return np.frombuffer(values, dtype) if len(values) else np.empty(0, dtype)


def _circle(source: Any, target: Any, start: int, rank: Any) -> list[int]:
    """The nodes of a cycle, in the direction of its edges."""
    keep = (rank[source] < 0) & (rank[target] < 0)
    before = dict(zip(target[keep].tolist(), source[keep].tolist(), strict=True))
    seen: dict[int, None] = {}
    at = start
    while at not in seen:
        seen[at] = None
        at = before[at]
    nodes = list(seen)
    return nodes[nodes.index(at) :][::-1]


def _as_number(text: str) -> NodeId:
    """The integer that a text is the only way to write; else the text."""
    short = len(text) < 20 and (text.isdecimal() or (text[:1] == "-" and text[1:].isdecimal())) and text.isascii()
    return int(text) if short and str(int(text)) == text else text


def _is_unicode(value: Any) -> bool:
    """Return whether all texts in a value can be encoded."""
    try:
        pending = [value]
        while pending:
            each = pending.pop()
            if isinstance(each, str):
                each.encode()
            elif isinstance(each, dict):
                pending += [*each.keys(), *each.values()]
            elif isinstance(each, (list, tuple)):
                pending += each
    except UnicodeEncodeError:
        return False
    return True


def _noun(value: object) -> str:
    names: Sequence[tuple[type, str]] = (
        (bool, "true or false"),
        (str, "a text"),
        (dict, "an object"),
        (list, "a list"),
    )
    if value is None:
        return "missing"
    return next((name for type_, name in names if isinstance(value, type_)), "a number")


def _is_operator(label: str) -> bool:
    """Return whether a label may be that of an ``op`` node; names of functions have a letter or a digit, or ``()``."""
    is_named = terms.is_function(label) or (label[:1] != "[" and any(map(str.isalnum, label)))
    return label in _OF_TUPLES or terms.is_guard(label) or is_named


def _present(type_: int, label: str, black_box: object) -> str:
    """The label of a node today: files of version 0.1 had functions by bare names such as ``+``."""
    wrong = _NO_OPERATOR if type_ == terms.OPERATOR else _NO_VALUE if type_ == terms.VALUE else ()
    return terms.function_label(label) if black_box is True and label in wrong else label


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
