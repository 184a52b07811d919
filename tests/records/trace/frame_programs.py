"""Random programs of DataFrames and SQL: relational operators; generators and subqueries are in files of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from program_rows import (
    NONE,
    Call,
    Data,
    Frame,
    Row,
    Session,
    Tokens,
    by_key,
    compared,
    distinct,
    none,
    renamed,
    scan,
    spark_compared,
    union,
)

Operator = Callable[["Programs", int], Frame | None]
"""Makes a frame of others, of at most some depth; None where it does not fit them."""
Condition = tuple[int, int, str]
"""A column of one side, one of the other, and how they compare."""
_TYPES = {"int": "long", "str": "string"}
_WIDEST = 9


class Programs:
    """Draws frames.

    Args:
        rng: Decides.
        sources: Frames that the programs read, each as often as it is listed.
        operators: What is drawn from, each as often as it is listed.
    """

    def __init__(
        self, rng: Random, sources: Sequence[Callable[[], Frame]] = (), operators: Sequence[Operator] = ()
    ) -> None:
        self.rng = rng
        self._sources = sources or [lambda name=name: scan(name) for name in ("r", "r", "s", "s", "t", "e")]
        self._operators = operators or every_operator()

    def frame(self, depth: int) -> Frame:
        """A frame of at most some operators above each other."""
        for _ in range(9 if depth else 0):
            found = self.rng.choice(self._operators)(self, depth - 1)
            if found is not None and len(found.kinds) <= _WIDEST:
                return found
        return self.rng.choice(self._sources)()

    def column(self, frame: Frame, kind: str, plain: bool = False) -> int | None:
        """A column of a kind."""
        found = [i for i, own in enumerate(frame.kinds) if own == kind and (frame.plain[i] or not plain)]
        return self.rng.choice(found) if found else None

    def conditions(self, a: Frame, b: Frame) -> list[Condition]:
        """Comparisons between columns of two frames."""
        found = []
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            kind = self.rng.choice(("int", "int", "str"))
            i, j = self.column(a, kind), self.column(b, kind)
            if i is not None and j is not None:
                found.append((i, j, self.rng.choice(("=", "=", "=", "<=>", "<"))))
        return found

    def calls(self, frame: Frame) -> list[Call]:
        """Aggregates."""
        found = []
        for _ in range(self.rng.randint(1, 2)):
            name = self.rng.choice(("count*", "count", "sum", "min", "max", "countDistinct"))
            column = None if name == "count*" else self.column(frame, "int")
            found.append(Call("count*" if column is None else name, column))
        return found


def every_operator() -> list[Operator]:
    from generator_programs import generated
    from subquery_programs import compared_scalar, exists, in_list, read_twice, scalar

    joins = [joined] * 3
    once = [all_distinct, set_operation, total, pivoted, grouping_sets, limited, joined_with_itself]
    nested = [exists, in_list, scalar, compared_scalar, read_twice]
    return [
        filtered,
        filtered,
        projected,
        *joins,
        united,
        grouped,
        grouped,
        windowed,
        windowed,
        generated,
        *once,
        *nested,
    ]


def matches(conditions: Sequence[Condition], x: Row, y: Row) -> bool:
    return all(compared(op, x.values[i], y.values[j]) for i, j, op in conditions)


def guard(conditions: Sequence[Condition], x: Row, y: Row) -> Tokens:
    """What a match of two rows comes of."""
    return y.there | union(x.cells[i] | y.cells[j] for i, j, _ in conditions)


def filtered(programs: Programs, depth: int) -> Frame:
    child, rng = programs.frame(depth), programs.rng
    i = rng.randrange(len(child.kinds))
    op = rng.choice(("=", "<", ">", "!=", "<=>", "null", "not null"))
    constant = rng.choice((1, 2, 3, 5)) if child.kinds[i] == "int" else rng.choice("ab")

    def build(session: Session) -> Any:
        frame, column = child.build(session), session.functions.col(f"c{i}")
        if op in ("null", "not null"):
            return frame.where(column.isNull() if op == "null" else column.isNotNull())
        return frame.where(spark_compared(op, column, session.functions.lit(constant)))

    def holds(value: Any) -> bool | None:
        if op in ("null", "not null"):
            return (value is None) == (op == "null")
        return compared(op, value, constant)

    def rows(data: Data) -> list[Row]:
        found = [row for row in child.rows(data) if holds(row.values[i])]
        return [Row(row.values, row.there | row.cells[i], row.cells) for row in found]

    return Frame(child.kinds, child.plain, build, rows, f"filter({child.text}, c{i} {op} {constant})", child.unique)


def projected(programs: Programs, depth: int) -> Frame:
    child = programs.frame(depth)
    terms = [_term(programs.rng, child) for _ in range(programs.rng.randint(1, 4))]

    def built(functions: Any, name: str, columns: Sequence[int]) -> Any:
        own = [functions.col(f"c{i}") for i in columns]
        if name == "add":
            return own[0] + own[1]
        if name == "coalesce":
            return functions.coalesce(own[0], functions.lit(0))
        return own[0] if own else functions.lit(7)

    def build(session: Session) -> Any:
        columns = [built(session.functions, *term).alias(f"c{n}") for n, term in enumerate(terms)]
        return child.build(session).select(*columns)

    def value(name: str, columns: Sequence[int], values: Sequence[Any]) -> Any:
        own = [values[i] for i in columns]
        if name == "add":
            return None if None in own else own[0] + own[1]
        if name == "coalesce":
            return 0 if own[0] is None else own[0]
        return own[0] if own else 7

    def rows(data: Data) -> list[Row]:
        return [
            Row(
                tuple(value(name, columns, row.values) for name, columns in terms),
                row.there,
                tuple(union(row.cells[i] for i in columns) for _, columns in terms),
            )
            for row in child.rows(data)
        ]

    kinds = tuple(child.kinds[columns[0]] if name == "column" else "int" for name, columns in terms)
    plain = tuple(all(child.plain[i] for i in columns) for _, columns in terms)
    unique = next((n for n, term in enumerate(terms) if term == ("column", (child.unique,))), None)
    return Frame(kinds, plain, build, rows, f"project({child.text}, {terms})", unique)


def _term(rng: Random, child: Frame) -> tuple[str, tuple[int, ...]]:
    numbers = [i for i, kind in enumerate(child.kinds) if kind == "int"]
    roll = rng.random()
    if roll < 0.6 or not numbers:
        return "column", (rng.randrange(len(child.kinds)),)
    if roll < 0.8:
        return "add", (rng.choice(numbers), rng.choice(numbers))
    return ("coalesce", (rng.choice(numbers),)) if roll < 0.9 else ("constant", ())


def joined(programs: Programs, depth: int, pair: tuple[Frame, Frame] | None = None) -> Frame | None:
    rng = programs.rng
    a, b = pair or (programs.frame(depth), programs.frame(rng.randint(0, depth)))
    how = rng.choice(("inner", "left", "right", "full", *("left_semi", "left_anti") * 2, "cross"))
    conditions = [] if how == "cross" else programs.conditions(a, b)
    if (how == "cross" and depth > 1) or (how != "cross" and not conditions):
        return None

    def build(session: Session) -> Any:
        left = a.build(session).toDF(*[f"l{i}" for i in range(len(a.kinds))])
        right = b.build(session).toDF(*[f"r{i}" for i in range(len(b.kinds))])
        if how == "cross":
            return renamed(left.crossJoin(right))
        col = session.functions.col
        together = [spark_compared(op, col(f"l{i}"), col(f"r{j}")) for i, j, op in conditions]
        return renamed(left.join(right, together, how))

    def rows(data: Data) -> list[Row]:
        return _joined_rows(how, conditions, a.rows(data), b.rows(data), (len(a.kinds), len(b.kinds)))

    text = f"{how}({a.text}, {b.text}, {conditions})"
    if how in ("left_semi", "left_anti"):
        return Frame(a.kinds, a.plain, build, rows, text, a.unique)
    return Frame(a.kinds + b.kinds, a.plain + b.plain, build, rows, text)


def _joined_rows(
    how: str, conditions: Sequence[Condition], left: list[Row], right: list[Row], widths: tuple[int, int]
) -> list[Row]:
    found, hit = [], set()
    for x in left:
        pairs = [(n, y) for n, y in enumerate(right) if matches(conditions, x, y)]
        if how in ("left_semi", "left_anti"):
            if bool(pairs) == (how == "left_semi"):
                found.append(Row(x.values, x.there | union(guard(conditions, x, y) for _, y in pairs), x.cells))
            continue
        hit |= {n for n, _ in pairs}
        for _, y in pairs:
            found.append(Row(x.values + y.values, x.there | guard(conditions, x, y), x.cells + y.cells))
        if not pairs and how in ("left", "full"):
            found.append(Row(x.values + (None,) * widths[1], x.there, x.cells + (NONE,) * widths[1]))
    if how in ("right", "full"):
        rest = [y for n, y in enumerate(right) if n not in hit]
        found += [Row((None,) * widths[0] + y.values, y.there, (NONE,) * widths[0] + y.cells) for y in rest]
    return found


def joined_with_itself(programs: Programs, depth: int) -> Frame | None:
    child = programs.frame(depth)
    return joined(programs, depth, (child, child))


class _Pair:
    """Two frames cut to columns of the same kinds."""

    def __init__(self, programs: Programs, depth: int) -> None:
        self.a, self.b = programs.frame(depth), programs.frame(programs.rng.randint(0, depth))
        self.columns: list[tuple[int, int, str]] = []
        for _ in range(programs.rng.randint(1, 3)):
            kind = programs.rng.choice(("int", "int", "str"))
            i, j = programs.column(self.a, kind), programs.column(self.b, kind)
            if i is not None and j is not None:
                self.columns.append((i, j, kind))

    def frame(self, build: Callable[[Any, Any], Any], rows: Callable[..., list[Row]], name: str) -> Frame:
        left, right = (cut(one, [pair[n] for pair in self.columns]) for n, one in enumerate((self.a, self.b)))
        return Frame(
            tuple(kind for _, _, kind in self.columns),
            tuple(self.a.plain[i] and self.b.plain[j] for i, j, _ in self.columns),
            lambda session: build(left.build(session), right.build(session)),
            lambda data: rows(left.rows(data), right.rows(data)),
            f"{name}({self.a.text}, {self.b.text}, {self.columns})",
        )


def cut(child: Frame, columns: Sequence[int]) -> Frame:
    """Some columns of a frame, whole numbers as long ones."""

    def build(session: Session) -> Any:
        own = [session.functions.col(f"c{i}").cast(_TYPES[child.kinds[i]]) for i in columns]
        return child.build(session).select(*[column.alias(f"c{n}") for n, column in enumerate(own)])

    def rows(data: Data) -> list[Row]:
        return [
            Row(tuple(row.values[i] for i in columns), row.there, tuple(row.cells[i] for i in columns))
            for row in child.rows(data)
        ]

    kinds, plain = tuple(child.kinds[i] for i in columns), tuple(child.plain[i] for i in columns)
    return Frame(kinds, plain, build, rows, f"cut({child.text}, {list(columns)})")


def united(programs: Programs, depth: int) -> Frame | None:
    pair = _Pair(programs, depth)
    if not pair.columns:
        return None
    once, by_name = programs.rng.random() < 0.3, programs.rng.random() < 0.5

    def build(left: Any, right: Any) -> Any:
        both = left.unionByName(right) if by_name else left.union(right)
        return both.distinct() if once else both

    def rows(left: list[Row], right: list[Row]) -> list[Row]:
        return distinct(left + right) if once else left + right

    return pair.frame(build, rows, "union_distinct" if once else "union")


def set_operation(programs: Programs, depth: int) -> Frame | None:
    pair = _Pair(programs, depth)
    if not pair.columns:
        return None
    name = programs.rng.choice(("intersect", "intersectAll", "subtract", "exceptAll"))

    def rows(left: list[Row], right: list[Row]) -> list[Row]:
        found: list[Row] = []
        groups = by_key(right, lambda row: row.values)
        for values, own in by_key(left, lambda row: row.values).items():
            others = groups.get(values, [])
            behind = own + others if name == "intersect" else own
            times = {
                "intersect": int(bool(others)),
                "subtract": int(not others),
                "intersectAll": min(len(own), len(others)),
                "exceptAll": len(own) - len(others),
            }[name]
            found += [Row(values, union(row.trace for row in behind), none(values))] * max(0, times)
        return found

    return pair.frame(lambda left, right: getattr(left, name)(right), rows, name)


def all_distinct(programs: Programs, depth: int) -> Frame:
    child, rng = programs.frame(depth), programs.rng
    columns = sorted(rng.sample(range(len(child.kinds)), rng.randint(1, min(3, len(child.kinds)))))
    own, method = cut(child, columns), rng.choice(("dropDuplicates", "distinct"))

    def build(session: Session) -> Any:
        return getattr(own.build(session), method)()

    return Frame(own.kinds, own.plain, build, lambda data: distinct(own.rows(data)), f"distinct({own.text})")


def grouped(programs: Programs, depth: int, mode: str = "groupBy") -> Frame:
    child, rng = programs.frame(depth), programs.rng
    keys = rng.sample(range(len(child.kinds)), min(len(child.kinds), rng.choice((1, 1, 2))))
    calls = programs.calls(child)
    if mode != "groupBy":
        calls = [call for call in calls if call.name != "countDistinct"] or [Call("count*", None)]
    masks = _masks(mode, len(keys))

    def build(session: Session) -> Any:
        functions = session.functions
        by = [functions.col(f"c{i}").alias(f"key{n}") for n, i in enumerate(keys)]
        measures = [call.spark(functions).alias(f"a{n}") for n, call in enumerate(calls)]
        return renamed(getattr(child.build(session), mode)(*by).agg(*measures))

    def rows(data: Data) -> list[Row]:
        found, all_rows = [], child.rows(data)
        for mask in masks:
            own = [i for i, on in zip(keys, mask, strict=True) if on]
            for group in by_key(all_rows, lambda row: tuple(row.values[i] for i in own)).values():  # noqa: B023
                key = tuple(group[0].values[i] if on else None for i, on in zip(keys, mask, strict=True))
                there = union(row.there | union(row.cells[i] for i in own) for row in group)
                values, cells = zip(*[call.of(group) for call in calls], strict=True)
                found.append(Row(key + values, there, none(key) + cells))
        return found

    kinds = tuple(child.kinds[i] for i in keys) + ("int",) * len(calls)
    plain = tuple(child.plain[i] for i in keys) + (False,) * len(calls)
    return Frame(kinds, plain, build, rows, f"{mode}({child.text}, {keys}, {calls})")


def _masks(mode: str, keys: int) -> list[tuple[bool, ...]]:
    """The keys that each grouping set has."""
    if mode == "rollup":
        return [tuple(n < most for n in range(keys)) for most in range(keys, -1, -1)]
    if mode == "cube":
        return [tuple(bool(bits >> n & 1) for n in range(keys)) for bits in range(2**keys)]
    return [(True,) * keys]


def grouping_sets(programs: Programs, depth: int) -> Frame:
    return grouped(programs, depth, programs.rng.choice(("rollup", "cube")))


def total(programs: Programs, depth: int) -> Frame:
    child = programs.frame(depth)
    calls = programs.calls(child)

    def build(session: Session) -> Any:
        measures = [call.spark(session.functions).alias(f"a{n}") for n, call in enumerate(calls)]
        return renamed(child.build(session).agg(*measures))

    def rows(data: Data) -> list[Row]:
        own = child.rows(data)
        values, cells = zip(*[call.of(own) for call in calls], strict=True)
        return [Row(values, NONE, cells)]

    return Frame(("int",) * len(calls), (False,) * len(calls), build, rows, f"total({child.text}, {calls})")


def windowed(programs: Programs, depth: int) -> Frame | None:
    child, rng = programs.frame(depth), programs.rng
    part, column = programs.column(child, rng.choice(("int", "str")), True), programs.column(child, "int", True)
    if part is None or column is None:
        return None
    kind = rng.choice(("whole", "whole", "running", "sliding", "range", "rank", "row_number", "lag"))
    if kind in ("running", "sliding", "row_number", "lag") and child.unique is None:
        kind = "whole"
    order = child.unique if child.unique is not None else column
    call = Call(rng.choice(("sum", "count", "min", "max")), column)
    if kind in ("rank", "range"):
        order = programs.column(child, "int", True) or column

    def build(session: Session) -> Any:
        functions, window = session.functions, session.window.partitionBy(f"c{part}")
        by = window.orderBy(functions.col(f"c{order}").desc() if kind == "row_number" else f"c{order}")
        whole = session.window.unboundedPreceding
        cell = {
            "whole": lambda: call.spark(functions).over(window),
            "running": lambda: call.spark(functions).over(by.rowsBetween(whole, session.window.currentRow)),
            "sliding": lambda: call.spark(functions).over(by.rowsBetween(-1, 1)),
            "range": lambda: call.spark(functions).over(by),
            "rank": lambda: functions.rank().over(by),
            "row_number": lambda: functions.row_number().over(by),
            "lag": lambda: functions.lag(f"c{column}").over(by),
        }[kind]()
        return renamed(child.build(session).withColumn("w", cell))

    def rows(data: Data) -> list[Row]:
        all_rows = child.rows(data)
        parts = by_key(all_rows, lambda row: row.values[part])
        found = []
        for row in all_rows:
            value, cell = _over(kind, call, order, parts[row.values[part]], row)
            found.append(Row((*row.values, value), row.there, (*row.cells, cell)))
        return found

    text = f"window({child.text}, part c{part}, {kind} {call} order c{order})"
    return Frame((*child.kinds, "int"), (*child.plain, False), build, rows, text, child.unique)


def _over(kind: str, call: Call, order: int, part: list[Row], row: Row) -> tuple[Any, Tokens]:
    """A window's value for a row of a partition, and what it comes of."""

    def key(each: Row) -> tuple[bool, Any]:
        value = each.values[order]
        return value is not None, 0 if value is None else value

    own = sorted(part, key=key, reverse=kind == "row_number")
    at = next(n for n, each in enumerate(own) if each is row)
    whole = union(each.there for each in own)
    if kind == "rank":
        return 1 + sum(key(each) < key(row) for each in own), whole
    if kind == "row_number":
        return at + 1, whole
    if kind == "lag":
        assert call.column is not None
        return own[at - 1].values[call.column] if at else None, whole
    frames = {
        "running": own[: at + 1],
        "sliding": own[max(0, at - 1) : at + 2],
        "range": [each for each in own if key(each) <= key(row)],
    }
    return call.of(frames.get(kind, own))


def pivoted(programs: Programs, depth: int) -> Frame | None:
    child = programs.frame(depth)
    found = (
        programs.column(child, "int", True),
        programs.column(child, "str", True),
        programs.column(child, "int", True),
    )
    if None in found:
        return None
    key, by, column = found
    call = Call(programs.rng.choice(("sum", "max", "count")), column)

    def build(session: Session) -> Any:
        keyed = child.build(session).groupBy(session.functions.col(f"c{key}").alias("key"))
        return renamed(keyed.pivot(f"c{by}", ["a", "b"]).agg(call.spark(session.functions)))

    def rows(data: Data) -> list[Row]:
        found = []
        for value, group in by_key(child.rows(data), lambda row: row.values[key]).items():
            some = [[row for row in group if row.values[by] == name] for name in "ab"]
            cells = [call.of(own) if own else (None, NONE) for own in some]
            values, tokens = zip(*cells, strict=True)
            found.append(Row((value, *values), union(row.there for row in group), (NONE, *tokens)))
        return found

    text = f"pivot({child.text}, c{key}, c{by}, {call})"
    return Frame(("int",) * 3, (True, False, False), build, rows, text)


def limited(programs: Programs, depth: int) -> Frame | None:
    child, rng = programs.frame(depth), programs.rng
    unique = child.unique
    if unique is None:
        return None
    most, down = rng.randint(1, 4), rng.random() < 0.5

    def build(session: Session) -> Any:
        by = session.functions.col(f"c{unique}")
        return child.build(session).orderBy(by.desc() if down else by).limit(most)

    def rows(data: Data) -> list[Row]:
        return sorted(child.rows(data), key=lambda row: row.values[unique], reverse=down)[:most]

    return Frame(child.kinds, child.plain, build, rows, f"limit({child.text}, c{unique}, {most})", unique)
