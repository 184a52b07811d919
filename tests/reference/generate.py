"""Random plans and data, and the SQL text of a plan.

Data have duplicate rows, NULL keys, skew and empty relations. Plans stay where results are determined: functions that
depend on the order of rows get a total order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from reference.algebra import (
    Aggregate,
    Call,
    Col,
    Data,
    Distinct,
    Exists,
    Explode,
    Filter,
    In,
    Join,
    Limit,
    Lit,
    Op,
    Over,
    Project,
    Scalar,
    Scan,
    SetOp,
    Union,
    Up,
    Window,
)

RELATIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "r": (("id", "int"), ("k", "int"), ("x", "int"), ("g", "str")),
    "s": (("id", "int"), ("k", "int"), ("y", "int"), ("l", "list")),
    "t": (("id", "int"), ("g", "str"), ("x", "int")),
}
"""Columns and types; ``id`` is unique in its relation."""


def random_data(rng: Random) -> Data:
    """Small relations; one in eight is empty, keys are skewed, a fifth of the cells NULL."""
    data: Data = {}
    for name, columns in RELATIONS.items():
        size = 0 if rng.random() < 0.125 else rng.randint(1, 7)
        rows = [tuple(_cell(rng, kind) for _, kind in columns[1:]) for _ in range(size)]
        rows = [rng.choice(rows[: n + 1]) if rng.random() < 0.3 else row for n, row in enumerate(rows)]
        data[name] = [(f"{name}{number}", (number, *row)) for number, row in enumerate(rows)]
    return data


def _cell(rng: Random, kind: str) -> Any:
    if rng.random() < 0.2:
        return None
    if kind == "int":
        return rng.choice((1, 1, 1, 2, 2, 3))
    return rng.choice("aab") if kind == "str" else [rng.choice((1, 2)) for _ in range(rng.randint(0, 3))]


@dataclass(frozen=True)
class Typed:
    """A plan, the types of its columns, and which of them are unique ids of rows."""

    plan: Any
    kinds: tuple[str, ...]
    unique: int | None = None


class Plans:
    """A generator of random plans."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def plan(self, depth: int, outer: tuple[str, ...] = ()) -> Typed:
        """A random plan; with ``outer`` it may read the enclosing row's columns."""
        if depth == 0:
            return self._scan(outer)
        makers = [
            self._filter, self._filter, self._project, self._join, self._join, self._union, self._distinct, self._set,
            self._group, self._group, self._window, self._explode, self._limit, self._total,
        ]  # fmt: skip
        return self.rng.choice(makers)(depth - 1, outer)

    def _scan(self, outer: tuple[str, ...]) -> Typed:
        name = self.rng.choice(list(RELATIONS))
        columns = RELATIONS[name]
        scan = Scan(name, tuple(column for column, _ in columns))
        kinds = tuple(kind for _, kind in columns)
        pairs = [(at, up) for at, kind in enumerate(kinds) for up, other in enumerate(outer) if kind == other == "int"]
        if pairs and self.rng.random() < 0.8:
            at, up = self.rng.choice(pairs)
            return Typed(Filter(scan, Op(self.rng.choice(("=", "=", "=", "<")), (Col(at), Up(up)))), kinds, 0)
        return Typed(scan, kinds, 0)

    def _filter(self, depth: int, outer: tuple[str, ...]) -> Typed:
        child = self.plan(depth, outer)
        return Typed(Filter(child.plan, self._condition(child.kinds, depth)), child.kinds, child.unique)

    def _condition(self, kinds: tuple[str, ...], depth: int) -> Any:
        roll = self.rng.random()
        if roll < 0.15:
            return Op("AND", (self._condition(kinds, 0), self._condition(kinds, depth)))
        if roll < 0.25:
            return Op("OR", (self._condition(kinds, 0), self._condition(kinds, depth)))
        if depth and roll < 0.65:
            return self._subquery_condition(kinds, depth - 1)
        return self._simple(kinds)

    def _subquery_condition(self, kinds: tuple[str, ...], depth: int) -> Any:
        roll = self.rng.random()
        found: Any
        if roll < 0.4:
            found = Exists(self.plan(min(depth, 1), kinds).plan)
        elif roll < 0.75:
            value = self._column(kinds, "int")
            inner = self.plan(min(depth, 1), kinds)
            column = self._column(inner.kinds, "int")
            if value is None or column is None:
                return self._simple(kinds)
            found = In(value, Project(inner.plan, (column,)))
        else:
            value = self._column(kinds, "int")
            scalar = self._scalar(kinds)
            return self._simple(kinds) if value is None or scalar is None else Op(self._comparison(), (value, scalar))
        return Op("NOT", (found,)) if self.rng.random() < 0.4 else found

    def _scalar(self, kinds: tuple[str, ...]) -> Any:
        inner = self._scan(kinds)
        column = self._column(inner.kinds, "int")
        if column is None:
            return None
        op = self.rng.choice(("MAX", "MIN", "SUM", "COUNT"))
        return Scalar(Aggregate(inner.plan, None, (Call(op, column),)))

    def _comparison(self) -> str:
        return self.rng.choice(("=", "=", "<>", "<", "<=", ">", ">="))

    def _simple(self, kinds: tuple[str, ...]) -> Any:
        column = self.rng.randrange(len(kinds))
        kind = kinds[column]
        roll = self.rng.random()
        if roll < 0.15 or kind in ("list", "num"):
            test: Any = Op("ISNULL", (Col(column),))
            return Op("NOT", (test,)) if self.rng.random() < 0.5 else test
        other = self._column(kinds, kind)
        right = other if other is not None and roll < 0.4 else Lit(self.rng.choice((1, 2, 3)) if kind == "int" else "a")
        return Op(self._comparison(), (Col(column), right))

    def _column(self, kinds: tuple[str, ...], kind: str) -> Any:
        found = [at for at, each in enumerate(kinds) if each == kind]
        return Col(self.rng.choice(found)) if found else None

    def _project(self, depth: int, outer: tuple[str, ...]) -> Typed:
        child = self.plan(depth, outer)
        expressions: list[Any] = []
        kinds: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            expression, kind = self._expression(child.kinds)
            expressions.append(expression)
            kinds.append(kind)
        unique = next((n for n, e in enumerate(expressions) if e == Col(child.unique)), None)
        return Typed(Project(child.plan, tuple(expressions)), tuple(kinds), unique)

    def _expression(self, kinds: tuple[str, ...]) -> tuple[Any, str]:
        roll = self.rng.random()
        at = self.rng.randrange(len(kinds))
        number = self._column(kinds, "int")
        if roll < 0.55 or number is None:
            return Col(at), kinds[at]
        if roll < 0.7:
            return Op(self.rng.choice("+-*"), (number, Lit(self.rng.choice((1, 2))))), "int"
        if roll < 0.8:
            return Op("COALESCE", (number, Lit(0))), "int"
        if roll < 0.9:
            return Op("CASE", (self._simple(kinds), number, Lit(7))), "int"
        scalar = self._scalar(kinds)
        return (number if scalar is None else scalar), "int"

    def _join(self, depth: int, outer: tuple[str, ...]) -> Typed:
        left, right = self.plan(depth, outer), self.plan(self.rng.randint(0, depth), outer)
        kind = self.rng.choice(("inner", "inner", "left", "right", "full", "semi", "anti"))
        width = len(left.kinds)
        pairs = [
            (a, b + width)
            for a, one in enumerate(left.kinds)
            for b, other in enumerate(right.kinds)
            if one == other and one in ("int", "str")
        ]
        condition: Any = Op("=", (Lit(1), Lit(1)))
        if pairs:
            a, b = self.rng.choice(pairs)
            condition = Op(self.rng.choice(("=", "=", "=", "=", "<=>", "<")), (Col(a), Col(b)))
            if self.rng.random() < 0.2:
                condition = Op("AND", (condition, self._simple(left.kinds + right.kinds)))
        elif kind not in ("semi", "anti"):
            kind = "inner"
        kinds = left.kinds if kind in ("semi", "anti") else left.kinds + right.kinds
        return Typed(
            Join(kind, left.plan, right.plan, condition), kinds, left.unique if kind in ("semi", "anti") else None
        )

    def _matched(self, depth: int, outer: tuple[str, ...]) -> tuple[Typed, Typed] | None:
        """Two plans whose columns have the same types."""
        left, right = self.plan(depth, outer), self.plan(self.rng.randint(0, depth), outer)
        columns = []
        for at, kind in enumerate(left.kinds):
            found = [b for b, other in enumerate(right.kinds) if other == kind and kind not in ("list", "num")]
            if found:
                columns.append((at, self.rng.choice(found), kind))
        columns = [column for column in columns if self.rng.random() < 0.6][:2] or columns[:1]
        if not columns:
            return None
        kinds = tuple(kind for _, _, kind in columns)
        sides = (Project(left.plan, tuple(Col(a) for a, _, _ in columns)), Project(right.plan, tuple(Col(b) for _, b, _ in columns)))  # fmt: skip
        return Typed(sides[0], kinds), Typed(sides[1], kinds)

    def _union(self, depth: int, outer: tuple[str, ...]) -> Typed:
        sides = self._matched(depth, outer)
        if sides is None:
            return self.plan(depth, outer)
        return Typed(Union(sides[0].plan, sides[1].plan), sides[0].kinds)

    def _set(self, depth: int, outer: tuple[str, ...]) -> Typed:
        sides = self._matched(depth, outer)
        if sides is None:
            return self.plan(depth, outer)
        kind = self.rng.choice(("intersect", "except", "except"))
        return Typed(SetOp(kind, self.rng.random() < 0.4, sides[0].plan, sides[1].plan), sides[0].kinds)

    def _distinct(self, depth: int, outer: tuple[str, ...]) -> Typed:
        child = self.plan(depth, outer)
        columns = [at for at, kind in enumerate(child.kinds) if kind in ("int", "str")]
        if not columns:
            return child
        chosen = self.rng.sample(columns, min(len(columns), 2))
        return Typed(Distinct(Project(child.plan, tuple(map(Col, chosen)))), tuple(child.kinds[at] for at in chosen))

    def _calls(self, kinds: tuple[str, ...]) -> tuple[tuple[Call, ...], tuple[str, ...]]:
        calls, made = [], []
        for _ in range(self.rng.randint(1, 2)):
            column = self._column(kinds, "int")
            op = "COUNT" if column is None else self.rng.choice(("COUNT", "COUNT", "SUM", "MIN", "MAX", "AVG"))
            star = column is None or (op == "COUNT" and self.rng.random() < 0.5)
            distinct = not star and op in ("COUNT", "SUM") and self.rng.random() < 0.3
            condition = self._simple(kinds) if self.rng.random() < 0.2 else None
            calls.append(Call(op, None if star else column, distinct, condition))
            made.append("num" if op == "AVG" else "int")
        return tuple(calls), tuple(made)

    def _group(self, depth: int, outer: tuple[str, ...]) -> Typed:
        child = self.plan(depth, outer)
        columns = [at for at, kind in enumerate(child.kinds) if kind in ("int", "str")]
        if not columns:
            return child
        keys = tuple(self.rng.sample(columns, self.rng.randint(1, min(2, len(columns)))))
        calls, kinds = self._calls(child.kinds)
        sets: tuple[tuple[int, ...], ...] = ()
        if self.rng.random() < 0.2:
            sets = tuple(keys[:n] for n in range(len(keys), -1, -1))  # ROLLUP
        made = tuple(child.kinds[key] for key in keys) + kinds
        plan: Any = Aggregate(child.plan, keys, calls, sets)
        if self.rng.random() < 0.35:
            plan = Filter(plan, self._simple(made))
        return Typed(plan, made)

    def _total(self, depth: int, outer: tuple[str, ...]) -> Typed:
        child = self.plan(depth, outer)
        calls, kinds = self._calls(child.kinds)
        return Typed(Aggregate(child.plan, None, calls), kinds)

    def _window(self, depth: int, outer: tuple[str, ...]) -> Typed:
        child = self.plan(depth, outer)
        columns = [at for at, kind in enumerate(child.kinds) if kind in ("int", "str")]
        if not columns or counts_rows(child.plan):
            return child
        part = tuple(self.rng.sample(columns, self.rng.randint(0, 1)))
        order = (self.rng.choice(columns),)
        argument = self._column(child.kinds, "int")
        if child.unique is not None and self.rng.random() < 0.6:
            over = self._ordered_call(part, (*order, child.unique), argument)
        elif argument is None or self.rng.random() < 0.3:
            over = Over("RANK", None, part, order)
        else:
            frame = self.rng.choice((None, ("RANGE", None, 0), ("RANGE", 0, None), ("ROWS", None, None)))
            over = Over(self.rng.choice(("SUM", "COUNT", "MAX")), argument, part, order, frame)
        return Typed(Window(child.plan, (over,)), (*child.kinds, "int"), child.unique)

    def _ordered_call(self, part: tuple[int, ...], order: tuple[int, ...], argument: Any) -> Over:
        op = self.rng.choice(("ROW_NUMBER", "LAG", "SUM", "COUNT", "MIN"))
        if op == "ROW_NUMBER" or argument is None:
            return Over("ROW_NUMBER", None, part, order)
        if op == "LAG":
            return Over("LAG", argument, part, order)
        frame = self.rng.choice(
            (("ROWS", -1, 0), ("ROWS", -1, 1), ("ROWS", None, 0), ("ROWS", 1, 2), ("ROWS", 0, None))
        )
        return Over(op, argument, part, order, frame)

    def _explode(self, depth: int, outer: tuple[str, ...]) -> Typed:
        child = self.plan(depth, outer)
        lists = [at for at, kind in enumerate(child.kinds) if kind == "list"]
        if not lists:
            return child
        return Typed(Explode(child.plan, self.rng.choice(lists), self.rng.random() < 0.5), (*child.kinds, "int"))

    def _limit(self, depth: int, outer: tuple[str, ...]) -> Typed:
        child = self.plan(depth, ())
        if child.unique is None or outer:
            return child
        return Typed(Limit(child.plan, (child.unique,), self.rng.randint(1, 3)), child.kinds, child.unique)


def counts_rows(plan: Any) -> bool:
    """Whether one row of the reference may stand for several."""
    if isinstance(plan, SetOp) and plan.every:
        return True
    return any(counts_rows(getattr(plan, name)) for name in ("child", "left", "right") if hasattr(plan, name))


class Sql:
    """Writes plans as Spark SQL, every column under a name of its own."""

    def __init__(self) -> None:
        self._names = count(1)

    def text(self, plan: Any) -> str:
        return self._plan(plan, ())[0]

    def _plan(self, plan: Any, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        return getattr(self, "_" + type(plan).__name__.lower())(plan, outer)

    def _new(self, number: int) -> tuple[str, ...]:
        return tuple(f"v{next(self._names)}" for _ in range(number))

    def _from(self, plan: Any, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        text, names = self._plan(plan, outer)
        return f"({text}) AS q{next(self._names)}", names

    def _scan(self, plan: Scan, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        names = self._new(len(plan.columns))
        columns = ", ".join(f"{old} AS {new}" for old, new in zip(plan.columns, names, strict=True))
        return f"SELECT {columns} FROM {plan.name}", names

    def _filter(self, plan: Filter, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        source, names = self._from(plan.child, outer)
        return f"SELECT {', '.join(names)} FROM {source} WHERE {self.term(plan.condition, names, outer)}", names

    def _project(self, plan: Project, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        source, names = self._from(plan.child, outer)
        made = self._new(len(plan.expressions))
        columns = ", ".join(
            f"{self.term(e, names, outer)} AS {new}" for e, new in zip(plan.expressions, made, strict=True)
        )
        return f"SELECT {columns} FROM {source}", made

    def _join(self, plan: Join, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        left, a = self._from(plan.left, outer)
        right, b = self._from(plan.right, outer)
        word = {"semi": "LEFT SEMI", "anti": "LEFT ANTI"}.get(plan.kind, plan.kind.upper())
        names = a if plan.kind in ("semi", "anti") else a + b
        on = self.term(plan.condition, a + b, outer)
        return f"SELECT {', '.join(names)} FROM {left} {word} JOIN {right} ON {on}", names

    def _union(self, plan: Union, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        return self._operation("UNION ALL", plan.left, plan.right, outer)

    def _setop(self, plan: SetOp, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        return self._operation(plan.kind.upper() + (" ALL" if plan.every else ""), plan.left, plan.right, outer)

    def _operation(self, word: str, left: Any, right: Any, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        (a, names), (b, _) = self._plan(left, outer), self._plan(right, outer)
        return f"SELECT {', '.join(names)} FROM (({a}) {word} ({b})) AS q{next(self._names)}", names

    def _distinct(self, plan: Distinct, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        source, names = self._from(plan.child, outer)
        return f"SELECT DISTINCT {', '.join(names)} FROM {source}", names

    def _aggregate(self, plan: Aggregate, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        source, names = self._from(plan.child, outer)
        keys = [names[key] for key in plan.keys or ()]
        columns = keys + [self._call(call, names, outer) for call in plan.calls]
        made = self._new(len(columns))
        text = ", ".join(f"{column} AS {new}" for column, new in zip(columns, made, strict=True))
        if plan.sets:
            lists = ", ".join(f"({', '.join(names[key] for key in one)})" for one in plan.sets)
            return f"SELECT {text} FROM {source} GROUP BY GROUPING SETS ({lists})", made
        return f"SELECT {text} FROM {source}" + (f" GROUP BY {', '.join(keys)}" if keys else ""), made

    def _call(self, call: Call, names: tuple[str, ...], outer: tuple[str, ...]) -> str:
        argument = "*" if call.argument is None else self.term(call.argument, names, outer)
        text = f"{call.op}({'DISTINCT ' if call.distinct else ''}{argument})"
        return text if call.condition is None else f"{text} FILTER (WHERE {self.term(call.condition, names, outer)})"

    def _window(self, plan: Window, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        source, names = self._from(plan.child, outer)
        made = self._new(len(plan.calls))
        columns = [f"{self._over(call, names, outer)} AS {new}" for call, new in zip(plan.calls, made, strict=True)]
        return f"SELECT {', '.join((*names, *columns))} FROM {source}", names + made

    def _over(self, call: Over, names: tuple[str, ...], outer: tuple[str, ...]) -> str:
        parts = []
        if call.partition:
            parts.append("PARTITION BY " + ", ".join(names[at] for at in call.partition))
        if call.order:
            parts.append("ORDER BY " + ", ".join(names[at] for at in call.order))
        if call.frame:
            parts.append("{} BETWEEN {} AND {}".format(call.frame[0], *(self._bound(b, e) for b, e in zip(call.frame[1:], ("PRECEDING", "FOLLOWING"), strict=True))))  # fmt: skip
        argument = "" if call.argument is None else self.term(call.argument, names, outer)
        return f"{call.op}({argument}) OVER ({' '.join(parts)})"

    def _bound(self, bound: int | None, end: str) -> str:
        if bound is None:
            return f"UNBOUNDED {end}"
        return "CURRENT ROW" if bound == 0 else f"{abs(bound)} {'PRECEDING' if bound < 0 else 'FOLLOWING'}"

    def _explode(self, plan: Explode, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        source, names = self._from(plan.child, outer)
        (new,) = self._new(1)
        word = "OUTER " if plan.outer else ""
        view = f"LATERAL VIEW {word}EXPLODE({names[plan.at]}) w{next(self._names)} AS {new}"
        return f"SELECT {', '.join((*names, new))} FROM {source} {view}", (*names, new)

    def _limit(self, plan: Limit, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        source, names = self._from(plan.child, outer)
        order = ", ".join(names[at] for at in plan.order)
        return f"SELECT {', '.join(names)} FROM {source} ORDER BY {order} LIMIT {plan.count}", names

    def term(self, term: Any, names: tuple[str, ...], outer: tuple[str, ...]) -> str:
        match term:
            case Col(at):
                return names[at]
            case Up(at):
                return outer[at]
            case Lit(value):
                return f"'{value}'" if isinstance(value, str) else str(value)
            case Op("ISNULL", (value,)):
                return f"({self.term(value, names, outer)} IS NULL)"
            case Op("NOT", (value,)):
                return f"(NOT {self.term(value, names, outer)})"
            case Op("COALESCE", args):
                return f"COALESCE({', '.join(self.term(arg, names, outer) for arg in args)})"
            case Op("CASE", (condition, then, other)):
                parts = [self.term(part, names, outer) for part in (condition, then, other)]
                return "CASE WHEN {} THEN {} ELSE {} END".format(*parts)
            case Op(name, args):
                return "(" + f" {name} ".join(self.term(arg, names, outer) for arg in args) + ")"
            case Scalar(plan):
                return f"({self._plan(plan, names)[0]})"
            case Exists(plan):
                return f"EXISTS ({self._plan(plan, names)[0]})"
            case In(value, plan):
                return f"({self.term(value, names, outer)} IN ({self._plan(plan, names)[0]}))"
        raise AssertionError(term)
