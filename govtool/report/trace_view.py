"""The view of a trace that a report draws: the datasets and runs that rows went through, from left to right.

It is read from the JSON of ``govtool trace back`` and ``trace forward`` (docs/schemas/trace-1.json), so a report can be
made of a trace that was computed earlier, on another machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.report.layout import place
from govtool.report.public_text import public_condition, public_reason
from govtool.wording import count

SCHEMA = "trace/1"
MOST_ROWS = 1_000
"""Rows of one group in a page at most; the count is that of all."""
DIRECTIONS = ("back", "forward")
EXACTNESS = ("exact", "superset", "coarse", "incomplete")


@dataclass(frozen=True, slots=True)
class RowGroupView:
    """Rows of one dataset, for one reason."""

    part: str
    """``selected``, ``input``, ``output``, ``against`` or ``between``."""
    count: int
    exactness: str
    why: str
    version: str = ""
    rows: tuple[Mapping[str, Any], ...] = ()
    """At most ``MOST_ROWS``; none unless rows are included."""

    def to_dict(self) -> dict[str, object]:
        """The JSON value."""
        return {
            "part": self.part,
            "count": self.count,
            "exactness": self.exactness,
            "why": self.why,
            "version": self.version,
            "rows": [dict(row) for row in self.rows],
        }


@dataclass(frozen=True, slots=True)
class TraceStepView:
    """One boundary within a run that the trace crossed."""

    operator: str
    rows: int
    exactness: str
    why: str

    def to_dict(self) -> dict[str, object]:
        """The JSON value."""
        return {"operator": self.operator, "rows": self.rows, "exactness": self.exactness, "why": self.why}


@dataclass(frozen=True, slots=True)
class TraceBoxView:
    """A dataset with its rows, or a run with its steps."""

    kind: str
    """``dataset`` or ``run``."""
    name: str
    groups: tuple[RowGroupView, ...] = ()
    steps: tuple[TraceStepView, ...] = ()
    notes: tuple[str, ...] = ()
    """Refused files, and the reasons why the trace does not go on."""
    is_lost: bool = False
    """A file was refused there, or the trace broke off."""

    def to_dict(self) -> dict[str, object]:
        """The JSON value."""
        return {
            "kind": self.kind,
            "name": self.name,
            "groups": [group.to_dict() for group in self.groups],
            "steps": [step.to_dict() for step in self.steps],
            "notes": list(self.notes),
            "lost": self.is_lost,
        }


@dataclass(frozen=True, slots=True)
class TraceView:
    """A trace: its boxes, and which rows went from which box to which."""

    direction: str
    where: str
    run: str
    output: str
    selected: int
    engine: str
    verified: bool | None
    boxes: tuple[TraceBoxView, ...]
    edges: tuple[tuple[int, int, str], ...]
    """Pairs of boxes in the direction of the data, with ``value``; ``reference`` for rows that stand against."""
    has_rows: bool = False

    def body(self) -> dict[str, object]:
        """The JSON value, as docs/schemas/report-1.json has it."""
        placed = place(len(self.boxes), [(a, b) for a, b, _ in self.edges])
        return {
            "direction": self.direction,
            "where": self.where,
            "run": self.run,
            "output": self.output,
            "selected": self.selected,
            "engine": self.engine,
            "verified": self.verified,
            "boxes": [box.to_dict() for box in self.boxes],
            "edges": [list(edge) for edge in self.edges],
            "layer": list(placed.layers),
            "rank": list(placed.ranks),
            "include_rows": self.has_rows,
        }


def trace_view(
    answer: Mapping[str, Any], *, include_rows: bool = False, columns: Collection[str] = frozenset()
) -> TraceView:
    """The view of a trace.

    Args:
        answer: The JSON value of a trace.
        include_rows: Rows are part of it, the literals of conditions and reasons, and the names of refused files;
            else only counts are.
        columns: Names that the condition shows where rows are not included, in lower case.

    Raises:
        ValueError: It is no trace; the text names the mistake.
    """
    schema = answer.get("schema")
    if schema != SCHEMA:
        raise ValueError(f"its schema is {schema!r}, not {SCHEMA!r}")
    try:
        return _Builder(answer, include_rows, columns).build()
    except KeyError as error:
        raise ValueError(f"the key {error} is missing") from None
    except (TypeError, AttributeError) as error:
        raise ValueError(f"a value has another type than in {SCHEMA}: {error}") from None


class _Builder:
    """Gathers boxes by name, in the order in which the trace met them."""

    def __init__(self, answer: Mapping[str, Any], include_rows: bool, columns: Collection[str]) -> None:
        self._answer, self._rows, self._columns = answer, include_rows, columns
        self._forward = _one_of(DIRECTIONS, answer["direction"]) == "forward"
        self._boxes: dict[tuple[str, str], dict[str, list[Any]]] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._edges: dict[tuple[int, int, str], None] = {}

    def build(self) -> TraceView:
        answer = self._answer
        self._add_run(answer, first=True)
        for hop in answer.get("hops", []):
            self._add_run(hop, first=False)
        for end in answer.get("ends", []):
            box = self._box("dataset", _text(end["dataset"]))
            box["notes"].append(f"ends here: {self._reason(_text(end['reason']))}")
            box["lost"] += [True] if end["broken"] else []
        verified = answer["verified"]
        return TraceView(
            "forward" if self._forward else "back",
            self._condition(_text(answer["where"])),
            _text(answer["run"]),
            _text(answer["output"]),
            _count(answer["selected"]),
            _text(answer["engine"]),
            None if verified is None else bool(verified),
            tuple(self._frozen(kind, name, parts) for (kind, name), parts in self._boxes.items()),
            tuple(self._edges),
            self._rows,
        )

    def _add_run(self, part: Mapping[str, Any], *, first: bool) -> None:
        """A run between the rows that were chosen and those that it leads to."""
        start = self._box("dataset", _text(part["output"]))
        if first:
            start["groups"].append(RowGroupView("selected", _count(part["selected"]), "exact", ""))
        run = self._number("run", _text(part["run"]) or "a query")
        box = self._box("run", _text(part["run"]) or "a query")
        box["steps"] += [self._step(step) for step in _list(part["steps"])]
        box["groups"] += [self._group("between", rows) for rows in _list(part.get("between", []))]
        self._link(self._number("dataset", _text(part["output"])), run, "value", against=self._forward)
        for name in ("inputs", "outputs", "against"):
            for rows in _list(part.get(name, [])):
                key = _text(rows["dataset"])
                self._box("dataset", key)["groups"].append(self._group(name.removesuffix("s"), rows))
                style = "reference" if name == "against" else "value"
                self._link(self._number("dataset", key), run, style, against=name != "outputs")
        for file in _list(part["refused"]):
            box = self._box("dataset", _text(file["dataset"]))
            box["refused"].append((_text(file["file"]), _text(file["reason"])))
            box["lost"].append(True)

    def _link(self, dataset: int, run: int, style: str, *, against: bool) -> None:
        """An edge into the run (``against``), or out of it."""
        self._edges[(dataset, run, style) if against else (run, dataset, style)] = None

    def _box(self, kind: str, name: str) -> dict[str, list[Any]]:
        self._numbers.setdefault((kind, name), len(self._numbers))
        return self._boxes.setdefault((kind, name), {"groups": [], "steps": [], "notes": [], "refused": [], "lost": []})

    def _number(self, kind: str, name: str) -> int:
        self._box(kind, name)
        return self._numbers[kind, name]

    def _step(self, step: Mapping[str, Any]) -> TraceStepView:
        return TraceStepView(
            self._reason(_text(step["operator"])),
            _count(step["rows"]),
            _one_of(EXACTNESS, step["exactness"]),
            self._reason(_text(step["why"])),
        )

    def _group(self, part: str, rows: Mapping[str, Any]) -> RowGroupView:
        kept: Sequence[Mapping[str, Any]] = _list(rows["rows"])[:MOST_ROWS] if self._rows else ()
        return RowGroupView(
            part,
            _count(rows["count"]),
            _one_of(EXACTNESS, rows["exactness"]),
            self._reason(_text(rows["why"])),
            _text(rows["version"]),
            tuple({str(key): value for key, value in row.items()} for row in kept),
        )

    def _condition(self, text: str) -> str:
        return text if self._rows else public_condition(text, self._columns)

    def _reason(self, text: str) -> str:
        return text if self._rows else public_reason(text)

    def _frozen(self, kind: str, name: str, parts: Mapping[str, list[Any]]) -> TraceBoxView:
        notes = (*self._refused(parts["refused"]), *parts["notes"])
        return TraceBoxView(
            kind,
            name,
            tuple(parts["groups"]),
            tuple(parts["steps"]),
            tuple(dict.fromkeys(notes)),
            bool(parts["lost"]),
        )

    def _refused(self, files: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Notes of refused files; without rows their number, as paths have values of partitions in them."""
        if self._rows:
            yield from (f"refused: {file}: {reason}" for file, reason in files)
        elif files:
            yield f"refused: {count(len({file for file, _ in files}), 'file')}"


def _one_of(words: tuple[str, ...], value: object) -> str:
    if value not in words:
        raise TypeError(f"{value!r:.60} is none of {', '.join(words)}")
    return str(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} is no text")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r:.60} is no count")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.60} is no list")
    return value


def trace_words(view: TraceView) -> Iterator[tuple[str, str, str, str]]:
    """The rows of a table of a trace: kind and name of a box, a step or group, its count and exactness."""
    for box in view.boxes:
        for step in box.steps:
            yield box.kind, box.name, step.operator, f"{step.rows:,} {step.exactness}"
        for group in box.groups:
            yield box.kind, box.name, group.part, f"{group.count:,} {group.exactness}"
