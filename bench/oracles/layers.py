"""Draws small warehouses: views over the tables of ``expressions``, and views over those views.

The first layer is what ``queries`` draws. The views above it are of shapes in which a statement names a column and
hands nothing of it on: import CTEs, CTEs that nobody reads, derived tables, EXISTS lists, LATERAL, EXCLUDE, REPLACE,
USING, set operations, windows, ORDER BY a position.
"""

from __future__ import annotations

from bench.oracles.expressions import INT, TABLES, Chance
from bench.oracles.queries import Generator

Columns = list[str]
"""The names of a relation's columns, in order."""


class Layers(Chance):
    """Draws the views of one warehouse, one after the other."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, "duckdb")
        self.generator = Generator(seed, "duckdb")

    def first(self) -> str:
        """A query over tables."""
        return self.generator.draw()

    def above(self, relations: dict[str, Columns]) -> str:
        """A query over tables and views."""
        name = self.pick([*relations])
        columns = relations[name]
        shapes = (
            self._import, self._unread, self._derived, self._exists, self._lateral, self._excluding, self._replacing,
            self._renaming, self._starred, self._distinct, self._ordered, self._windowed, self._nested, self._grouped,
            self._recursive, self._shadowed, self._shadowed_within, self._filtered, self._qualified, self._relabelled,
            self._named_window, self._valued, self._sets, self._distinct_on, self._by_pattern, self._grouped_all,
            self._unpivoted,
        )  # fmt: skip
        pairs = (
            self._using, self._joined, self._union, self._union_by_name, self._united_stars, self._scalar,
            self._correlated, self._ordered_by_query, self._having, self._naturally, self._paired,
        )  # fmt: skip
        if self.chance(0.35):
            other = self.pick([*relations])
            return self.pick(pairs)(name, columns, other, relations[other])
        return self.pick(shapes)(name, columns)

    def _some(self, columns: Columns, least: int = 1) -> Columns:
        count = self.random.randrange(least, max(least, min(4, len(columns))) + 1)
        return self.random.sample(columns, min(count, len(columns)))

    def _one(self, columns: Columns) -> str:
        return self.pick(columns)

    def _list(self, columns: Columns, alias: str = "") -> str:
        return ", ".join(f"{alias}.{c}" if alias else c for c in columns)

    # ---- one relation ------------------------------------------------------------------------------------------

    def _import(self, name: str, columns: Columns) -> str:
        taken = self._some(columns, 2)
        where = f" WHERE {self._one(columns)} IS NOT NULL" if self.chance(0.3) else ""
        return f"WITH src AS (SELECT {self._list(taken)} FROM {name}{where}) SELECT {self._one(taken)} FROM src"

    def _unread(self, name: str, columns: Columns) -> str:
        unread = f"unread AS (SELECT {self._list(self._some(columns))} FROM {name})"
        more = f", deeper AS (SELECT count(*) AS n FROM unread WHERE {self._one(columns)} IS NULL)"
        more = more if self.chance(0.2) and f" {columns[0]} " in unread else ""
        return f"WITH {unread}{more} SELECT {self._list(self._some(columns))} FROM {name}"

    def _derived(self, name: str, columns: Columns) -> str:
        taken = self._some(columns, 2)
        picked = self.pick((self._one(taken), "count(*) AS n", "1 AS one"))
        return f"SELECT {picked} FROM (SELECT {self._list(taken)} FROM {name}) AS x"

    def _exists(self, name: str, columns: Columns) -> str:
        inner = f"SELECT {self._list(self._some(columns), 'i')} FROM {name} AS i"
        test = self.pick((f"EXISTS ({inner})", f"NOT EXISTS ({inner} WHERE i.{self._one(columns)} IS NULL)"))
        table = self.pick([*TABLES])
        return f"SELECT id FROM {table} WHERE {test}" if "id" in TABLES[table] else f"SELECT 1 AS one WHERE {test}"

    def _lateral(self, name: str, columns: Columns) -> str:
        inner = f"SELECT x.{self._one(columns)} AS l, x.{self._one(columns)} AS m"
        picked = self.pick((f"x.{self._one(columns)}", "q.l", "1 AS one"))
        return f"SELECT {picked} FROM {name} AS x, LATERAL ({inner}) AS q"

    def _excluding(self, name: str, columns: Columns) -> str:
        if len(columns) < 2:
            return self._starred(name, columns)
        dropped = self._some(columns[1:])
        return f"SELECT * EXCLUDE ({self._list(dropped)}) FROM {name}"

    def _replacing(self, name: str, columns: Columns) -> str:
        return f"SELECT * REPLACE (coalesce({self._one(columns)}, NULL) AS {self._one(columns)}) FROM {name}"

    def _renaming(self, name: str, columns: Columns) -> str:
        return f"SELECT * RENAME ({self._one(columns)} AS {self.fresh('r')}) FROM {name}"

    def _starred(self, name: str, columns: Columns) -> str:
        alias = self.pick(("*", "x.*"))
        return f"SELECT {alias} FROM {name} AS x" + (f" WHERE {self._one(columns)} IS NULL" if self.chance(0.3) else "")

    def _distinct(self, name: str, columns: Columns) -> str:
        if self.chance(0.5):
            return f"SELECT DISTINCT * FROM {name}"
        return f"SELECT {self._one(columns)} FROM (SELECT DISTINCT {self._list(self._some(columns, 2))} FROM {name})"

    def _ordered(self, name: str, columns: Columns) -> str:
        taken = self._some(columns, 2)
        by = self.pick((str(self.random.randrange(len(taken)) + 1), self._one(columns)))
        return f"SELECT {taken[0]} FROM (SELECT {self._list(taken)} FROM {name} ORDER BY {by}) AS x"

    def _windowed(self, name: str, columns: Columns) -> str:
        window = f"row_number() OVER (PARTITION BY {self._one(columns)} ORDER BY {self._one(columns)})"
        taken = self._some(columns)
        inner = f"SELECT {self._list(taken)}, {window} AS rn FROM {name}"
        return f"SELECT {taken[0]} FROM ({inner}) AS x" + (" WHERE rn = 1" if self.chance(0.6) else "")

    def _nested(self, name: str, columns: Columns) -> str:
        outer, inner = self._some(columns, 2), columns
        return (
            f"WITH a AS (WITH b AS (SELECT {self._list(inner)} FROM {name}) SELECT {self._list(outer)} FROM b),"
            f" c AS (SELECT * FROM a) SELECT {self._one(outer)} FROM {self.pick(('a', 'c'))}"
        )

    def _grouped(self, name: str, columns: Columns) -> str:
        key = self._one(columns)
        inner = (
            f"SELECT {key} AS k, count({self._one(columns)}) AS n, max({self._one(columns)}) AS m FROM {name} GROUP BY"
        )
        return f"SELECT {self.pick(('k', 'n', 'count(*) AS c'))} FROM ({inner} {self.pick((key, '1'))}) AS x"

    def _recursive(self, name: str, columns: Columns) -> str:
        first, second = self._one(columns), self._one(columns)
        return (
            f"WITH RECURSIVE w(p, q) AS (SELECT {first}, {second} FROM {name}"
            f" UNION ALL SELECT p, q FROM w WHERE false) SELECT {self.pick(('p', 'q', '1 AS one'))} FROM w"
        )

    def _shadowed(self, name: str, columns: Columns) -> str:
        """A CTE with the name of the relation that it reads."""
        taken = self._some(columns, 2)
        return f"WITH {name} AS (SELECT {self._list(taken)} FROM {name}) SELECT {self._one(taken)} FROM {name}"

    def _shadowed_within(self, name: str, columns: Columns) -> str:
        """A CTE that a CTE of a subquery hides."""
        one, two = self._some(columns, 2), self._some(columns, 2)
        inner = f"WITH a AS (SELECT {self._list(two)} FROM {name}) SELECT {self._one(two)} AS z FROM a"
        picked = self.pick(("z", self._one(one), "1 AS one"))
        return f"WITH a AS (SELECT {self._list(one)} FROM {name}) SELECT {picked} FROM a, ({inner}) AS q"

    def _filtered(self, name: str, columns: Columns) -> str:
        test = f"FILTER (WHERE {self._one(columns)} IS NOT NULL)"
        inner = f"SELECT {self._one(columns)} AS k, count({self._one(columns)}) {test} AS n FROM {name} GROUP BY 1"
        return self.pick((inner, f"SELECT k FROM ({inner}) AS x", f"SELECT count(*) {test} AS n FROM {name}"))

    def _qualified(self, name: str, columns: Columns) -> str:
        window = f"row_number() OVER (PARTITION BY {self._one(columns)} ORDER BY {self._one(columns)})"
        return f"SELECT {self._list(self._some(columns))} FROM {name} QUALIFY {window} = 1"

    def _relabelled(self, name: str, columns: Columns) -> str:
        """Columns under a list of names, of the relation, a subquery or a CTE."""
        taken = self._some(columns, 2)
        labels = [self.fresh("l") for _ in taken]
        listed = self._list(labels)
        inner = f"SELECT {self._list(taken)} FROM {name}"
        return self.pick(
            (
                f"SELECT {self._one(labels)} FROM ({inner}) AS x ({listed})",
                f"WITH x ({listed}) AS ({inner}) SELECT {self._one(labels)} FROM x",
                f"SELECT * FROM ({inner}) AS x ({self._list(labels[:1])})",
            )
        )

    def _named_window(self, name: str, columns: Columns) -> str:
        window = f"PARTITION BY {self._one(columns)} ORDER BY {self._one(columns)}"
        return f"SELECT lag({self._one(columns)}) OVER w AS p FROM {name} WINDOW w AS ({window})"

    def _valued(self, name: str, columns: Columns) -> str:
        one, two = self._one(columns), self._one(columns)
        rows = f"VALUES (x.{one}::VARCHAR, 1), (x.{two}::VARCHAR, 2)"
        picked = self.pick(("u", "v", f"x.{self._one(columns)}"))
        return f"SELECT {picked} FROM {name} AS x, LATERAL ({rows}) AS q (u, v)"

    def _sets(self, name: str, columns: Columns) -> str:
        key, other = self._one(columns), self._one(columns)
        form = self.pick(("GROUPING SETS (({0}), ({1}), ())", "CUBE ({0}, {1})", "ROLLUP ({0}, {1})"))
        inner = f"SELECT {key} AS k, {other} AS o, count(*) AS n FROM {name} GROUP BY {form.format(key, other)}"
        return self.pick((inner, f"SELECT n FROM ({inner}) AS x"))

    def _distinct_on(self, name: str, columns: Columns) -> str:
        order = f" ORDER BY {self._one(columns)}" if self.chance(0.6) else ""
        return f"SELECT DISTINCT ON ({self._one(columns)}) {self._one(columns)} FROM {name}{order}"

    def _by_pattern(self, name: str, columns: Columns) -> str:
        column = self._one(columns)
        return self.pick(
            (f"SELECT COLUMNS('^{column}$') FROM {name}", f"SELECT COLUMNS(c -> c <> '{column}') FROM {name}")
        )

    def _grouped_all(self, name: str, columns: Columns) -> str:
        taken = self._some(columns)
        order = " ORDER BY ALL" if self.chance(0.5) else ""
        return f"SELECT {self._list(taken)}, count({self._one(columns)}) AS n FROM {name} GROUP BY ALL{order}"

    def _unpivoted(self, name: str, columns: Columns) -> str:
        taken = self._some(columns, 2)
        inner = f"SELECT {', '.join(f'{c}::VARCHAR AS {c}' for c in taken)} FROM {name}"
        picked = self.pick(("val", "nm", "count(*) AS n"))
        return f"SELECT {picked} FROM (UNPIVOT ({inner}) ON {self._list(taken[:1])} INTO NAME nm VALUE val)"

    # ---- two relations -----------------------------------------------------------------------------------------

    def _using(self, name: str, columns: Columns, other: str, others: Columns) -> str:
        shared = [column for column in columns if column in others]
        if not shared:
            return self._joined(name, columns, other, others)
        key = self._one(shared)
        picked = self.pick((key, f"a.{self._one(columns)}", "count(*) AS n", f"b.{self._one(others)}"))
        side = self.pick(("", "LEFT ", "RIGHT ", "FULL ", "SEMI "))
        if side == "SEMI ":
            picked = f"a.{self._one(columns)}"
        return f"SELECT {picked} FROM {name} AS a {side}JOIN {other} AS b USING ({key})"

    def _joined(self, name: str, columns: Columns, other: str, others: Columns) -> str:
        on = f"a.{self._one(columns)}::VARCHAR = b.{self._one(others)}::VARCHAR"
        inner = f"SELECT {self._list(self._some(others, 2))} FROM {other}"
        kept = self.pick((f"{other} AS b", f"(SELECT * FROM {other}) AS b"))
        if self.chance(0.3):
            return f"SELECT a.{self._one(columns)} FROM {name} AS a LEFT JOIN ({inner}) AS b ON true"
        return f"SELECT a.{self._one(columns)}, b.{self._one(others)} AS y FROM {name} AS a JOIN {kept} ON {on}"

    def _union(self, name: str, columns: Columns, other: str, others: Columns) -> str:
        operator = self.pick(("UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
        arms = [
            f"SELECT {self._one(c)}::VARCHAR AS p, {self._one(c)}::VARCHAR AS q FROM {r}"
            for r, c in ((name, columns), (other, others))
        ]
        return f"SELECT {self.pick(('p', 'q', 'p, q'))} FROM ({f' {operator} '.join(arms)}) AS x"

    def _union_by_name(self, name: str, columns: Columns, other: str, others: Columns) -> str:
        one, two = self._one(columns), self._one(others)
        return f"SELECT {one}::VARCHAR AS p FROM {name} UNION ALL BY NAME SELECT {two}::VARCHAR AS r FROM {other}"

    def _united_stars(self, name: str, columns: Columns, other: str, others: Columns) -> str:
        return f"SELECT * FROM {name} UNION ALL SELECT * FROM {self.pick((name, other))}"

    def _scalar(self, name: str, columns: Columns, other: str, others: Columns) -> str:
        derived = f"SELECT {self._list(others, 'i')} FROM {other} AS i"
        inner = f"SELECT {self.pick(('max', 'count'))}(o.{self._one(others)}) FROM ({derived}) AS o"
        return f"SELECT {self._one(columns)}, ({inner}) AS s FROM {name}"

    def _correlated(self, name: str, columns: Columns, other: str, others: Columns) -> str:
        """A subquery in the SELECT list that names a column of the query around it."""
        test = f"o.{self._one(others)}::VARCHAR = x.{self._one(columns)}::VARCHAR"
        inner = f"SELECT max(o.{self._one(others)}) FROM {other} AS o WHERE {test}"
        return f"SELECT x.{self._one(columns)}, ({inner}) AS s FROM {name} AS x"

    def _ordered_by_query(self, name: str, columns: Columns, other: str, others: Columns) -> str:
        inner = f"SELECT count(o.{self._one(others)}) FROM {other} AS o WHERE o.{self._one(others)} IS NOT NULL"
        taken = self._some(columns)
        return f"SELECT {self._list(taken)} FROM {name} ORDER BY ({inner}), {self._one(columns)} LIMIT 5"

    def _having(self, name: str, columns: Columns, other: str, others: Columns) -> str:
        inner = f"SELECT min(o.{self._one(others)})::VARCHAR FROM {other} AS o"
        test = f"max({self._one(columns)})::VARCHAR >= ({inner})"
        return f"SELECT {self._one(columns)} AS k, count(*) AS n FROM {name} GROUP BY 1 HAVING {test}"

    def _naturally(self, name: str, columns: Columns, other: str, others: Columns) -> str:
        shared = [column for column in columns if column in others]
        if len(shared) != 1:
            return self._correlated(name, columns, other, others)
        side = self.pick(("", "LEFT ", "FULL "))
        picked = self.pick((shared[0], "count(*) AS n", f"a.{self._one(columns)}", "*"))
        return f"SELECT {picked} FROM {name} AS a NATURAL {side}JOIN {other} AS b"

    def _paired(self, name: str, columns: Columns, other: str, others: Columns) -> str:
        """Several columns compared at once."""
        one, two = self._one(columns), self._one(columns)
        inner = f"SELECT {self._one(others)}::VARCHAR, {self._one(others)}::VARCHAR FROM {other}"
        return f"SELECT {self._one(columns)} FROM {name} WHERE ({one}::VARCHAR, {two}::VARCHAR) IN ({inner})"


def column_type(kind: str) -> str:
    """The type of a column of a table, as DuckDB writes it."""
    return "BIGINT" if kind == INT else "VARCHAR"
