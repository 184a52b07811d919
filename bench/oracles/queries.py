"""Generates queries over a fixed schema: joins, CTEs, set operations, windows, subqueries, and how names may clash.

A query is drawn from a seed; nothing else decides it. What is drawn is nearly always valid, and always deterministic:
where rows may tie, nothing depends on which of them comes first. Names are few on purpose, so that aliases hide
columns, columns of two tables clash, and inner scopes hide outer ones.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.oracles.expressions import INT, TABLES, TEXT, Column, Expressions, Query, Relation, Scope

_ALIASES = ("id", "qty", "city", "amount", "x", "y", "total", "label")


class Generator(Expressions):
    """Draws queries. ``dialect`` is ``duckdb`` or ``postgres``."""

    def draw(self) -> str:
        """One query."""
        return self.query(3, None, top=True).sql

    # ---- queries -----------------------------------------------------------------------------------

    def query(self, depth: int, outer: Scope | None, types: list[str] | None = None, *, top: bool = False) -> Query:
        """A query expression; of columns of certain types, if ``types`` are given."""
        kept = list(self.ctes)
        with_ = ""
        if depth > 1 and self.chance(0.5 if top else 0.15):
            taken: set[str] = set()
            parts = [self._cte(depth - 1, taken) for _ in range(self.pick((1, 1, 2, 3)))]
            recursive = "RECURSIVE " if any("(n, m) AS (" in part for part in parts) else ""
            if recursive and taken & {*TABLES}:  # under RECURSIVE a CTE that hides a table would read itself
                parts, recursive = [], ""
                self.ctes = kept
            with_ = f"WITH {recursive}{', '.join(parts)} " if parts else ""
        if depth > 0 and self.chance(0.2):
            found = self._set_operation(depth - 1, outer, types)
        else:
            found = self.select(depth, outer, types, top=top)
        self.ctes = kept
        return Query(with_ + found.sql, found.columns)

    def _cte(self, depth: int, taken: set[str]) -> str:
        name = self.pick([*TABLES])  # a CTE may hide a table
        if name in taken or self.chance(0.85):
            name = self.fresh("c")
        taken.add(name)
        if self.chance(0.12) and name not in TABLES:
            first, _ = self._int_column()
            table, column = self._int_column()
            anchor = f"SELECT {self._int_column(first)[1]}, {self._int_column(first)[1]} FROM {first}"
            columns = [("n", INT), ("m", INT)]
            step = (
                f"SELECT n + 1, {self.pick(('m', f'm + u.{column}', f'u.{column}', 'n'))} FROM {name}"
                f" JOIN {table} AS u ON u.{column} = {self.pick(('n', 'm'))} WHERE n < 2"
            )
            self.ctes.append(Relation(name, columns))
            return f"{name}(n, m) AS ({anchor} {self.pick(('UNION', 'UNION ALL'))} {step})"
        body = self.query(depth, None)
        unique = self._deduplicated(body.columns)
        columns = unique or []
        listed = ""
        if unique is None or self.chance(0.2):
            columns = [(f"k{n}", type_) for n, (_, type_) in enumerate(body.columns)]
            listed = f"({', '.join(name for name, _ in columns)})"
        self.ctes = [cte for cte in self.ctes if cte.alias != name]
        self.ctes.append(Relation(name, columns))
        materialized = self.pick(("", "", "", "MATERIALIZED ", "NOT MATERIALIZED "))
        return f"{name}{listed} AS {materialized}({body.sql})"

    def _int_column(self, table: str = "") -> tuple[str, str]:
        free = [t for t in TABLES if all(cte.alias != t for cte in self.ctes)]
        table = table or self.pick(free or ["people"])
        return table, self.pick([name for name, type_ in TABLES[table].items() if type_ == INT])

    def _set_operation(self, depth: int, outer: Scope | None, types: list[str] | None) -> Query:
        types = types or [self.pick((INT, INT, TEXT)) for _ in range(self.pick((1, 2, 3)))]
        left = self.query(depth, outer, types) if self.chance(0.2) else self.select(depth, outer, types)
        operator = self.pick(("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT"))
        if self.duckdb and self.chance(0.15) and operator.startswith("UNION"):
            names = [name for name, _ in left.columns]
            right = self.select(depth, outer, types, names=self.random.sample(names, len(names)))
            by_name = dict(right.columns)
            if all(by_name.get(name) == type_ for name, type_ in left.columns) and len(by_name) == len(names):
                return Query(f"({left.sql}) {operator} BY NAME ({right.sql})", left.columns)
        right = self.query(depth, outer, types) if self.chance(0.2) else self.select(depth, outer, types)
        sql = f"({left.sql}) {operator} ({right.sql})"
        if self.chance(0.3):
            more = self.select(depth, outer, types)
            sql = f"{sql} {self.pick(('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT'))} ({more.sql})"
        if self.chance(0.3):
            sql += f" ORDER BY {', '.join(str(n + 1) for n in range(len(types)))}"
            if self.chance(0.5):
                sql += f" LIMIT {self.random.randrange(1, 6)}"
        return Query(sql, left.columns)

    def select(
        self,
        depth: int,
        outer: Scope | None,
        types: list[str] | None = None,
        *,
        names: list[str] | None = None,
        top: bool = False,
    ) -> Query:
        """One SELECT."""
        scope = Scope(outer)
        from_ = self._from(depth, scope)
        where = f" WHERE {self.condition(scope, depth)}" if self.chance(0.5) else ""
        if types is None and self.chance(0.25) and self._starred(scope):
            items, columns = self._star(scope)
            if self.chance(0.3):
                alias = self._alias(columns)
                items += f", {self.expression(scope, INT, depth)} AS {alias}"
                columns.append((alias, INT))
            return Query(f"SELECT {items} FROM {from_}{where}{self._limit(columns)}", columns)
        wanted = types or [self.pick((INT, INT, TEXT)) for _ in range(self.pick((1, 2, 3, 4)))]
        if self.chance(0.3):
            return self._grouped(scope, from_, where, wanted, names, depth)
        return self._plain(scope, from_, where, wanted, names, depth, structs=types is None)

    def _plain(
        self,
        scope: Scope,
        from_: str,
        where: str,
        types: list[str],
        names: list[str] | None,
        depth: int,
        *,
        structs: bool,
    ) -> Query:
        columns: list[Column] = []
        items = []
        window = ""
        named = ""
        if self.chance(0.15):
            window = self.fresh("w")
            named = f" WINDOW {window} AS ({self._window(scope)})"
        for number, type_ in enumerate(types):
            if type_ == INT and self.chance(0.25):
                text = self._windowed(scope, window)
            elif structs and self.duckdb and self.chance(0.08):
                first, second = self.expression(scope, INT, 1), self.expression(scope, TEXT, 1)
                text, type_ = f"{{'f': {first}, 'g': {second}}}", f"struct(f {INT}, g {TEXT})"
            else:
                text = self.expression(scope, type_, depth)
            alias = names[number] if names else self._named(text, columns)
            items.append(f"{text} AS {alias}" if alias else text)
            name = alias or text.split(".")[-1]
            columns.append((name, type_))
            if self.duckdb and alias and not type_.startswith("struct"):
                scope.aliases.append((alias, type_))
        distinct = ""
        if self.chance(0.12):
            distinct = "DISTINCT "
        elif self.chance(0.04):  # the order of all columns makes it certain which rows are kept
            positions = [str(n + 1) for n in range(len(items))]
            first = ", ".join(positions[: self.random.randrange(len(items)) + 1])
            head = f"SELECT DISTINCT ON ({first}) {', '.join(items)} FROM {from_}"
            return Query(f"{head}{where}{named} ORDER BY {', '.join(positions)}", columns)
        qualify = ""
        if self.duckdb and self.chance(0.08):
            qualify = f" QUALIFY {self._windowed(scope, window)} < {self.random.randrange(1, 6)}"
        head = f"SELECT {distinct}{', '.join(items)} FROM {from_}"
        if self.duckdb and not distinct and not from_.startswith("(VALUES") and self.chance(0.05):
            head = f"FROM {from_} SELECT {', '.join(items)}"
        if self.duckdb and self.chance(0.06):  # DuckDB lets WHERE name an output column
            name, type_ = self.pick(columns)
            if type_ == INT and name.isidentifier():
                where += f"{' AND' if where else ' WHERE'} {name} < {self.random.randrange(1, 5)}"
        order = self._limit(columns)
        if not order and self.chance(0.15) and not distinct:
            order = f" ORDER BY {self._order_item(scope, columns)}"
        return Query(f"{head}{where}{named}{qualify}{order}", columns)

    def _order_item(self, scope: Scope, columns: list[Column]) -> str:
        bare = [name for name, _ in columns if name.isidentifier()]
        choices: list[Callable[[], str]] = [lambda: str(self.random.randrange(1, len(columns) + 1))]
        if bare:
            choices.append(lambda: self.pick(bare))
        choices.append(lambda: self._reference(scope, INT))
        direction = self.pick(("", " DESC", " NULLS FIRST"))
        return self.pick(choices)() + direction

    def _limit(self, columns: list[Column]) -> str:
        """A LIMIT under an order of all columns, so that it is certain which rows are left."""
        if not self.chance(0.08):
            return ""
        names = [name for name, type_ in columns if type_ == INT and name.isidentifier()]
        if names and self.chance(0.5):  # an expression: in some dialects it may name an output column, in others not
            positions = ", ".join(str(n + 1) for n in range(len(columns)))
            item = self.pick((f"abs({self.pick(names)})", f"{self.pick(names)} DESC", f"-{self.pick(names)}"))
            return f" ORDER BY {item}, {positions} LIMIT {self.random.randrange(1, 8)}"
        return f" ORDER BY {', '.join(str(n + 1) for n in range(len(columns)))} LIMIT {self.random.randrange(1, 8)}"

    def _grouped(
        self, scope: Scope, from_: str, where: str, types: list[str], names: list[str] | None, depth: int
    ) -> Query:
        count = self.random.randrange(0, min(3, len(types)) + 1)
        items: list[str] = []
        columns: list[Column] = []
        keys: list[str] = []
        plain_keys = self.chance(0.6)
        for number, type_ in enumerate(types):
            if number < count:
                text = (
                    self._reference(scope, type_) if plain_keys else self.expression(scope, type_, 1, subqueries=False)
                )
                keys.append(text)
            else:
                text = self.aggregate(scope, type_)
                if self.chance(0.1) and keys and type_ == INT and plain_keys:
                    text = f"sum({text}) OVER (PARTITION BY {keys[0]})"
            alias = names[number] if names else self._named(text, columns)
            items.append(f"{text} AS {alias}" if alias else text)
            columns.append((alias or text.split(".")[-1], type_))
        group = ""
        if keys:
            way = self.random.random()
            if self.duckdb and way < 0.2:
                group = " GROUP BY ALL"
            elif way < 0.35:
                group = f" GROUP BY {', '.join(str(n + 1) for n in range(count))}"
            elif way < 0.45:  # an alias may be a column of a source too
                group = f" GROUP BY {', '.join(name for name, _ in columns[:count])}"
            elif plain_keys and way < 0.6:
                form = self.pick(("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"))
                group = " GROUP BY " + form.format(", ".join(keys))
            else:
                group = f" GROUP BY {', '.join(keys)}"
            if plain_keys and self.chance(0.1) and "1" not in group:
                alias = self._alias(columns)
                items.append(f"GROUPING({keys[0]}) AS {alias}")
                columns.append((alias, INT))
                if names is not None or len(types) != len(columns):
                    items.pop()
                    columns.pop()
        having = ""
        if self.chance(0.2):
            tested = self.aggregate(scope, INT)
            if self.duckdb and columns[-1][1] == INT and self.chance(0.3):
                tested = columns[-1][0]
            having = f" HAVING {tested} {self.pick(('>', '<', '<>'))} {self.random.randrange(5)}"
        sql = f"SELECT {', '.join(items)} FROM {from_}{where}{group}{having}{self._limit(columns)}"
        return Query(sql, columns)

    # ---- FROM --------------------------------------------------------------------------------------

    def _from(self, depth: int, scope: Scope) -> str:
        text, relation = self._item(depth, scope)
        scope.relations.append(relation)
        for _ in range(self.pick((0, 0, 1, 1, 2))):
            text = self._joined(text, depth, scope)
        if depth > 0 and self.chance(0.1):  # a comma binds last: the joins after it do not see what is before it
            second = Scope(scope.outer)
            more = self._from(0, second)
            if not {r.alias for r in scope.relations} & {r.alias for r in second.relations}:
                clashing = scope.names() & second.names()
                scope.relations.extend(second.relations)
                scope.merged.update(second.merged)
                for name in clashing:
                    scope.merged.pop(name, None)
                    scope.apart.add(name)
                return f"{text}, {more}"
        return text

    def _joined(self, left: str, depth: int, scope: Scope) -> str:
        if depth > 0 and self.chance(0.12):
            inner = self.query(0, Scope(scope.outer, scope.relations, scope.merged))
            columns = self._deduplicated(inner.columns)
            if columns is not None:
                alias = self.fresh("l")
                scope.relations.append(Relation(alias, columns))
                join, on = self.pick((("CROSS JOIN", ""), ("LEFT JOIN", " ON TRUE")))
                return f"{left} {join} LATERAL ({inner.sql}) AS {alias}{on}"
        right, relation = self._item(depth - 1, scope)
        common = [
            (name, type_)
            for name, type_ in relation.columns
            if scope.bare().get(name) == type_ and sum(name == n for n, _ in relation.columns) == 1
        ]
        clashing = {name for name, _ in relation.columns} & scope.names()
        side = self.pick(("", "", "LEFT ", "RIGHT ", "FULL "))
        if common and self.chance(0.35):
            used = self.random.sample(common, self.random.randrange(1, len(common) + 1))
            scope.relations.append(relation)
            scope.merged.update(used)
            return f"{left} {side}JOIN {right} USING ({', '.join(name for name, _ in used)})"
        if common and clashing == {name for name, _ in common} and self.chance(0.3):
            scope.relations.append(relation)
            scope.merged.update(common)
            return f"{left} NATURAL {side}JOIN {right}"
        both = Scope(None, [*scope.relations, relation], dict(scope.merged))
        # A name that was merged is ambiguous once another relation has it too.
        for name in clashing:
            both.merged.pop(name, None)
        condition = self._equality(scope, relation)
        if condition is None or self.chance(0.1):
            scope.relations.append(relation)
            scope.merged = both.merged
            return f"{left} CROSS JOIN {right}"
        if self.duckdb and self.chance(0.1):  # visible to its own condition only
            return f"{left} {self.pick(('SEMI', 'ANTI'))} JOIN {right} ON {condition}"
        if side != "FULL " and self.chance(0.2):
            condition += f" AND {self.condition(both, 0)}"
        scope.relations.append(relation)
        scope.merged = both.merged
        return f"{left} {side}JOIN {right} ON {condition}"

    def _equality(self, scope: Scope, relation: Relation) -> str | None:
        mine = [(f"{r.alias}.{n}", t) for r in scope.relations for n, t in r.columns if t in (INT, TEXT)]
        theirs = [(f"{relation.alias}.{n}", t) for n, t in relation.columns]
        pairs = [(a, b) for a, s in mine for b, t in theirs if s == t]
        if not pairs:
            return None
        first, second = self.pick(pairs)
        return f"{first} = {second}"

    def _item(self, depth: int, scope: Scope) -> tuple[str, Relation]:
        if self.ctes and self.chance(0.4):
            cte = self.pick(self.ctes)
            alias = self.fresh("t")
            return f"{cte.alias} AS {alias}", Relation(alias, cte.columns)
        if depth > 0 and self.chance(0.3):
            return self._derived(depth, scope)
        if self.chance(0.05):
            alias = self.fresh("v")
            # One width of integers: between different ones, PostgreSQL takes USING's column from the wider side.
            numbers = [f"CAST({self.random.randrange(4)} AS BIGINT)" for _ in range(3)]
            rows = ", ".join(f"({number}, '{self.pick('abc')}')" for number in numbers)
            return f"(VALUES {rows}) AS {alias}(id, label)", Relation(alias, [("id", INT), ("label", TEXT)])
        if self.chance(0.03):
            alias = self.fresh("g")
            return f"generate_series(CAST(1 AS BIGINT), 3) AS {alias}(n)", Relation(alias, [("n", INT)])
        table = self.pick([*TABLES])
        columns = list(TABLES[table].items())
        for cte in self.ctes:
            if cte.alias == table:
                columns = cte.columns
        if self.chance(0.25) and all(relation.alias != table for relation in scope.relations):
            return table, Relation(table, columns)
        alias = self.fresh("t")
        if self.chance(0.08):
            columns = [(f"a{n}", type_) for n, (_, type_) in enumerate(columns)]
            return f"{table} AS {alias}({', '.join(name for name, _ in columns)})", Relation(alias, columns)
        return f"{table} {self.pick(('AS ', ''))}{alias}", Relation(alias, columns)

    def _derived(self, depth: int, scope: Scope) -> tuple[str, Relation]:
        if self.duckdb and self.chance(0.15):
            return self._pivoted(depth)
        inner = self.query(depth - 1, scope.outer)
        alias = self.fresh("s")
        columns = self._deduplicated(inner.columns)
        if columns is None or self.chance(0.15):
            columns = [(f"k{n}", type_) for n, (_, type_) in enumerate(inner.columns)]
            return f"({inner.sql}) AS {alias}({', '.join(name for name, _ in columns)})", Relation(alias, columns)
        return f"({inner.sql}) AS {alias}", Relation(alias, columns)

    def _pivoted(self, depth: int) -> tuple[str, Relation]:
        alias = self.fresh("p")
        if self.chance(0.5):
            inner = self.select(depth - 1, None, [INT, TEXT, INT], names=["g", "k", "v"])
            if [name for name, _ in inner.columns] != ["g", "k", "v"]:
                return self._item(0, Scope())
            function = self.pick(("sum", "max", "count"))
            group = self.pick(("", " GROUP BY g"))
            text = f"(SELECT * FROM ({inner.sql}) PIVOT ({function}(v) FOR k IN ('a', 'b'){group})) AS {alias}"
            return text, Relation(alias, [("g", INT), ("a", INT), ("b", INT)])
        inner = self.select(depth - 1, None, [INT, INT, INT], names=["g", "p", "q"])
        if [name for name, _ in inner.columns] != ["g", "p", "q"]:
            return self._item(0, Scope())
        text = f"(SELECT * FROM ({inner.sql}) UNPIVOT INCLUDE NULLS (v FOR k IN (p, q))) AS {alias}"
        return text, Relation(alias, [("g", INT), ("k", TEXT), ("v", INT)])

    def _deduplicated(self, columns: list[Column]) -> list[Column] | None:
        """Names that an outer query may use; None where they are not unique."""
        names = [name for name, _ in columns]
        return list(columns) if len(set(names)) == len(names) and all(n.isidentifier() for n in names) else None

    # ---- projections -------------------------------------------------------------------------------

    def _starred(self, scope: Scope) -> bool:
        return not scope.apart and all(
            type_ in (INT, TEXT) or type_.startswith("struct") for r in scope.relations for _, type_ in r.columns
        )

    def _star(self, scope: Scope) -> tuple[str, list[Column]]:
        if self.chance(0.3):
            relation = self.pick(scope.relations)
            return f"{relation.alias}.*", list(relation.columns)
        columns: list[Column] = [] if self.duckdb else list(scope.merged.items())
        for relation in scope.relations:
            for column in relation.columns:
                if column[0] not in scope.merged or column not in columns:
                    columns.append(column)
        if self.duckdb and self.chance(0.4):
            name, type_ = self.pick(columns)
            if sum(name == other for other, _ in columns) == 1 and len(columns) > 1:
                if self.chance(0.5):
                    return f"* EXCLUDE ({name})", [c for c in columns if c[0] != name]
                if type_ in (INT, TEXT) and name not in scope.merged:  # DuckDB repeats a merged column then
                    return f"* REPLACE ({self.expression(scope, type_, 1)} AS {name})", columns
        return "*", columns

    def _named(self, text: str, columns: list[Column]) -> str:
        """An alias for an expression; none for some of the plain columns."""
        simple = text.replace(".", "").replace("_", "").isalnum() and not text[0].isdigit() and "." in text
        if simple and text.count(".") == 1 and self.chance(0.6):
            name = text.split(".")[-1]
            if all(name != other for other, _ in columns):
                return ""
        return self._alias(columns)

    def _alias(self, columns: list[Column]) -> str:
        taken = {name for name, _ in columns}
        free = [name for name in _ALIASES if name not in taken]
        return self.pick(free) if free and self.chance(0.7) else self.fresh("e")
