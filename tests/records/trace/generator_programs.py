"""Random programs: generators (explode, posexplode, inline, stack), over lists and maps that functions make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from frame_programs import Programs
from program_rows import Data, Frame, Row, Session, renamed, union

Elements = list[tuple[Any, ...]] | None


@dataclass(frozen=True)
class Shape:
    """A generator of two whole numbers and a text, ``{a}``, ``{b}`` and ``{s}`` in its SQL.

    Attributes:
        sql: The call.
        names: The columns that it makes.
        shown: What is selected of these.
        kinds: Their kinds.
        values: The elements; None for a list that is NULL.
    """

    sql: str
    names: str
    shown: tuple[str, ...]
    kinds: tuple[str, ...]
    values: Callable[[Any, Any, Any], Elements]


def _numbers(sql: str, values: Callable[[Any, Any, Any], list[Any] | None]) -> Shape:
    """A list of whole numbers."""

    def elements(a: Any, b: Any, s: Any) -> Elements:
        found = values(a, b, s)
        return None if found is None else [(value,) for value in found]

    return Shape(f"explode({sql})", "e", ("e",), ("int",), elements)


def _plus(a: int | None, n: int | None) -> int | None:
    return None if a is None or n is None else a + n


def _above(value: int | None, least: int) -> bool:
    return value is not None and value > least


def _once(values: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


SHAPES = (
    _numbers("array({a}, {b})", lambda a, b, s: [a, b]),
    _numbers("array({a}, {a}, {b})", lambda a, b, s: [a, a, b]),
    _numbers("filter(array({a}, {b}), e -> e IS NOT NULL)", lambda a, b, s: [v for v in (a, b) if v is not None]),
    _numbers("filter(array({a}, {b}, 2), e -> e > 1)", lambda a, b, s: [v for v in (a, b, 2) if _above(v, 1)]),
    _numbers("filter(array({a}, {b}), (e, i) -> e > i)", lambda a, b, s: [v for i, v in enumerate((a, b)) if _above(v, i)]),
    _numbers("transform(array({a}, {b}), e -> e + {a})", lambda a, b, s: [_plus(a, a), _plus(b, a)]),
    _numbers("transform(array({a}, {b}), (e, i) -> e + i)", lambda a, b, s: [a, _plus(b, 1)]),
    _numbers("flatten(array(array({a}, {b}), array({b})))", lambda a, b, s: [a, b, b]),
    _numbers(
        "flatten(array(array({a}), if({b} > 2, NULL, array({b}))))", lambda a, b, s: None if _above(b, 2) else [a, b]
    ),
    _numbers("if({a} > 2, NULL, array({a}, {b}))", lambda a, b, s: None if _above(a, 2) else [a, b]),
    _numbers("sequence(0, cast(pmod({a}, 3) AS int))", lambda a, b, s: None if a is None else list(range(a % 3 + 1))),
    _numbers("array_distinct(array({a}, {b}, 1))", lambda a, b, s: _once([a, b, 1])),
    _numbers("array_except(array({a}, {b}), array(1, 2))", lambda a, b, s: _once([v for v in (a, b) if v not in (1, 2)])),
    _numbers("array_union(array({a}), array({b}))", lambda a, b, s: _once([a, b])),
    _numbers(
        "array_repeat({a}, cast(pmod({b}, 3) AS int))", lambda a, b, s: None if b is None else [a] * (b % 3)
    ),
    Shape("posexplode(array({a}, {b}))", "p, e", ("p", "e"), ("int", "int"), lambda a, b, s: [(0, a), (1, b)]),
    Shape(
        "posexplode(filter(array({a}, {b}), e -> e > 1))", "p, e", ("p", "e"), ("int", "int"),
        lambda a, b, s: list(enumerate(v for v in (a, b) if _above(v, 1))),
    ),
    Shape(
        "explode(array(named_struct('p', {a}, 'q', {s}), named_struct('p', {b}, 'q', {s})))", "e", ("e.p", "e.q"),
        ("int", "str"), lambda a, b, s: [(a, s), (b, s)],
    ),
    Shape(
        "inline(array(struct({a}, {s}), struct({b}, {s})))", "p, q", ("p", "q"), ("int", "str"),
        lambda a, b, s: [(a, s), (b, s)],
    ),
    Shape(
        "inline(filter(array(named_struct('p', {a}), named_struct('p', {b})), e -> e.p < 3))", "p", ("p",), ("int",),
        lambda a, b, s: [(v,) for v in (a, b) if v is not None and v < 3],
    ),
    Shape("stack(2, {a}, {s}, {b}, {s})", "p, q", ("p", "q"), ("int", "str"), lambda a, b, s: [(a, s), (b, s)]),
    Shape(
        "explode(map('p', {a}, 'q', {b}))", "n, e", ("n", "e"), ("str", "int"), lambda a, b, s: [("p", a), ("q", b)]
    ),
    Shape(
        "explode(map_filter(map('p', {a}, 'q', {b}), (n, e) -> e > 1))", "n, e", ("n", "e"), ("str", "int"),
        lambda a, b, s: [(n, v) for n, v in (("p", a), ("q", b)) if _above(v, 1)],
    ),
    Shape(
        "posexplode(map('p', {a}, 'q', {b}))", "i, n, e", ("i", "n", "e"), ("int", "str", "int"),
        lambda a, b, s: [(0, "p", a), (1, "q", b)],
    ),
    Shape("explode(split(concat({s}, ',a'), ','))", "e", ("e",), ("str",), lambda a, b, s: None if s is None else [(s,), ("a",)]),
)  # fmt: skip


def generated(programs: Programs, depth: int) -> Frame | None:
    """A frame beside the elements of a generator of its rows, or of two, the second of what the first made."""
    child, rng = programs.frame(depth), programs.rng
    for number in range(rng.choice((1, 1, 2))):
        found = _beside(rng, child, number)
        if found is None:
            return child if number else None
        child = found
    return child


def _beside(rng: Random, child: Frame, number: int) -> Frame | None:
    numbers = [i for i, kind in enumerate(child.kinds) if kind == "int"]
    texts = [i for i, kind in enumerate(child.kinds) if kind == "str"]
    shape = rng.choice(SHAPES)
    wanted = [name for name in "abs" if "{" + name + "}" in shape.sql]
    if not numbers or ("s" in wanted and not texts):
        return None
    last = numbers[-1:] if number else numbers  # of what the generator before made, where there is a number
    at = {"a": rng.choice(last), "b": rng.choice(numbers), "s": rng.choice(texts) if texts else None}
    used = {name: at[name] for name in wanted}
    outer, as_view = rng.random() < 0.4, rng.random() < 0.5

    def build(session: Session) -> Any:
        call = shape.sql.format(**{name: f"c{i}" for name, i in used.items()})
        if as_view:
            view = session.view(child)
            shown = ", ".join(f"{one} AS x{n}" for n, one in enumerate(shape.shown))
            lateral = f"LATERAL VIEW {'OUTER ' if outer else ''}{call} l AS {shape.names}"
            return renamed(session.spark.sql(f"SELECT v.*, {shown} FROM {view} AS v {lateral}"))
        if outer and not call.startswith("stack"):  # which makes a row of each, always
            call = call.replace("(", "_outer(", 1)
        beside = child.build(session).selectExpr("*", f"{call} AS ({shape.names})")
        return renamed(beside.selectExpr(*[f"c{n}" for n in range(len(child.kinds))], *shape.shown))

    def rows(data: Data) -> list[Row]:
        found = []
        for row in child.rows(data):
            values = {name: row.values[i] for name, i in used.items()}
            elements = shape.values(*(values.get(name) for name in "abs")) or []
            if outer and not elements:
                elements = [(None,) * len(shape.kinds)]
            cell = union(row.cells[i] for i in used.values())
            for each in elements:
                found.append(Row(row.values + each, row.there | cell, row.cells + (cell,) * len(each)))
        return found

    plain = all(child.plain[i] for i in used.values())
    text = f"{'outer ' if outer else ''}{'view ' if as_view else ''}{shape.sql} {used} of {child.text}"
    return Frame(child.kinds + shape.kinds, child.plain + (plain,) * len(shape.kinds), build, rows, text)
