"""Random programs: subqueries of SQL, and a common table expression that is read twice."""

from __future__ import annotations

from typing import Any

from frame_programs import Condition, Programs, guard, matches
from program_rows import Call, Data, Frame, Row, Session, compared, renamed, union


def _sides(programs: Programs, depth: int) -> tuple[Frame, Frame]:
    return programs.frame(depth), programs.frame(min(1, depth))


def _on(conditions: list[Condition]) -> str:
    return " AND ".join(f"o.c{i} {op} i.c{j}" for i, j, op in conditions)


def _existing(conditions: list[Condition], negated: bool, left: list[Row], right: list[Row]) -> list[Row]:
    """The rows with a match, or without one."""
    found = []
    for x in left:
        pairs = [y for y in right if matches(conditions, x, y)]
        if bool(pairs) != negated:
            found.append(Row(x.values, x.there | union(guard(conditions, x, y) for y in pairs), x.cells))
    return found


def exists(programs: Programs, depth: int) -> Frame | None:
    a, b = _sides(programs, depth)
    conditions, negated = programs.conditions(a, b), programs.rng.random() < 0.5
    if not conditions:
        return None
    word = "NOT EXISTS" if negated else "EXISTS"

    def build(session: Session) -> Any:
        left, right = session.view(a), session.view(b)
        inner = f"SELECT 1 FROM {right} AS i WHERE {_on(conditions)}"
        return session.spark.sql(f"SELECT * FROM {left} AS o WHERE {word} ({inner})")

    def rows(data: Data) -> list[Row]:
        return _existing(conditions, negated, a.rows(data), b.rows(data))

    return Frame(a.kinds, a.plain, build, rows, f"{word.lower()}({a.text}, {b.text}, {conditions})", a.unique)


def in_list(programs: Programs, depth: int) -> Frame | None:
    a, b = _sides(programs, depth)
    negated = programs.rng.random() < 0.4
    i, j = programs.column(a, "int"), programs.column(b, "int")
    if i is None or j is None:
        return None
    correlated = programs.conditions(a, b)[:1] if programs.rng.random() < 0.4 else []
    correlated = [(p, q, "<=>" if op == "<=>" else "=") for p, q, op in correlated]
    conditions = [(i, j, "="), *correlated]

    def build(session: Session) -> Any:
        left, right = session.view(a), session.view(b)
        where = f" WHERE {_on(correlated)}" if correlated else ""
        inner = f"SELECT i.c{j} FROM {right} AS i{where}"
        return session.spark.sql(f"SELECT * FROM {left} AS o WHERE o.c{i} {'NOT ' if negated else ''}IN ({inner})")

    def is_out(x: Row, right: list[Row]) -> bool:
        """Whether NOT IN holds: there is nothing in the list, or nothing equal and no NULL."""
        values = [y.values[j] for y in right if matches(correlated, x, y)]
        return not values or (x.values[i] is not None and None not in values and x.values[i] not in values)

    def rows(data: Data) -> list[Row]:
        left, right = a.rows(data), b.rows(data)
        return [x for x in left if is_out(x, right)] if negated else _existing(conditions, False, left, right)

    text = f"{'not ' if negated else ''}in({a.text}.c{i}, {b.text}.c{j}, {correlated})"
    return Frame(a.kinds, a.plain, build, rows, text, a.unique)


def scalar(programs: Programs, depth: int) -> Frame | None:
    a, b = _sides(programs, depth)
    i, j, column = programs.column(a, "int"), programs.column(b, "int"), programs.column(b, "int")
    if i is None or j is None or column is None:
        return None
    call = Call(programs.rng.choice(("sum", "max", "count", "min")), column)

    def build(session: Session) -> Any:
        left, right = session.view(a), session.view(b)
        inner = f"SELECT {call.name}(i.c{column}) FROM {right} AS i WHERE i.c{j} = o.c{i}"
        return renamed(session.spark.sql(f"SELECT o.*, ({inner}) AS q FROM {left} AS o"))

    def rows(data: Data) -> list[Row]:
        found, right = [], b.rows(data)
        for x in a.rows(data):
            own = [y for y in right if compared("=", x.values[i], y.values[j])]
            value, cell = call.of([Row(y.values, y.there | y.cells[j] | x.cells[i], y.cells) for y in own])
            found.append(Row((*x.values, value), x.there, (*x.cells, cell)))
        return found

    text = f"scalar({a.text}, {call} of {b.text} where c{j} = c{i})"
    return Frame((*a.kinds, "int"), (*a.plain, False), build, rows, text, a.unique)


def compared_scalar(programs: Programs, depth: int) -> Frame | None:
    a, b = _sides(programs, depth)
    i, column = programs.column(a, "int"), programs.column(b, "int")
    if i is None or column is None:
        return None
    call = Call(programs.rng.choice(("max", "count", "min")), column)
    op = programs.rng.choice(("=", "<", ">", ">="))

    def build(session: Session) -> Any:
        left, right = session.view(a), session.view(b)
        inner = f"SELECT {call.name}(c{column}) FROM {right}"
        return session.spark.sql(f"SELECT * FROM {left} AS o WHERE o.c{i} {op} ({inner})")

    def rows(data: Data) -> list[Row]:
        value, cell = call.of(b.rows(data))
        found = [x for x in a.rows(data) if compared(op, x.values[i], value)]
        return [Row(x.values, x.there | x.cells[i] | cell, x.cells) for x in found]

    return Frame(a.kinds, a.plain, build, rows, f"where({a.text}.c{i} {op} {call} of {b.text})", a.unique)


def read_twice(programs: Programs, depth: int) -> Frame | None:
    """A common table expression with a correlated subquery, joined with itself."""
    a, b = programs.frame(depth), programs.frame(0)
    conditions, i, negated = programs.conditions(a, b), programs.column(a, "int"), programs.rng.random() < 0.5
    if not conditions or i is None or len(a.kinds) > 4:
        return None
    word = "NOT EXISTS" if negated else "EXISTS"

    def build(session: Session) -> Any:
        left, right = session.view(a), session.view(b)
        inner = f"SELECT 1 FROM {right} AS i WHERE {_on(conditions)}"
        sides = [(side, n) for side in ("one", "two") for n in range(len(a.kinds))]
        columns = ", ".join(f"{side}.c{n} AS {side}{n}" for side, n in sides)
        return renamed(
            session.spark.sql(
                f"WITH c AS (SELECT * FROM {left} AS o WHERE {word} ({inner}))"
                f" SELECT {columns} FROM c AS one JOIN c AS two ON one.c{i} = two.c{i}"
            )
        )

    def rows(data: Data) -> list[Row]:
        kept = _existing(conditions, negated, a.rows(data), b.rows(data))
        pairs = [(x, y) for x in kept for y in kept if compared("=", x.values[i], y.values[i])]
        both = [(x, y, x.cells[i] | y.cells[i]) for x, y in pairs]
        return [Row(x.values + y.values, x.there | y.there | cell, x.cells + y.cells) for x, y, cell in both]

    text = f"twice({word.lower()} {a.text}, {b.text}, {conditions}, on c{i})"
    return Frame(a.kinds * 2, a.plain * 2, build, rows, text)
