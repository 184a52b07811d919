"""What the columns of a view depend on, read out of PostgreSQL's own parse tree of it (``pg_rewrite.ev_action``).

The parser of PostgreSQL has resolved every name: a ``VAR`` says which column of which range table entry it is. What is
left is to follow entries that are subqueries, CTEs, joins and set operations down to tables, and to call the clauses by
the names of our kinds. Nothing of the extractor is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.oracles.cluster import Cluster
from bench.oracles.trees import Node, read

Column = tuple[str, str]
"""A table and a column of it."""

VALUE, CONDITIONAL, WINDOW = "value", "conditional", "window"
EXISTS = "exists"
"""The kind, within an expression, of what the rows of an EXISTS depend on: a condition of the column that it ends in,
and nothing new where the expression decides about rows.
"""

Deps = frozenset[tuple[Column, str]]
"""Columns with how they reach: ``value``, ``conditional`` or ``window``."""

RELATION, SUBQUERY, JOIN, FUNCTION, TABLEFUNC, VALUES, CTE = range(7)
RESULT, GROUP = 8, 9

EXISTS_SUBLINK = 0
UNION, INTERSECT, EXCEPT = 1, 2, 3

MAX_ROUNDS = 100


@dataclass
class ViewLineage:
    """What a view's tree says."""

    names: list[str]
    """Output columns in order (information_schema)."""
    contributed: list[Deps]
    """By position."""
    referenced: set[tuple[Column, str]]
    """Columns that decide the rows, with the clause: join, filter, group_by, sort, distinct, set_operation."""
    depends: set[Column] = field(default_factory=set)
    """pg_depend: every column that the tree names, those of unused outputs of subqueries included."""

    @property
    def columns(self) -> set[Column]:
        """All that reaches an output or the rows."""
        return {column for deps in self.contributed for column, _ in deps} | {column for column, _ in self.referenced}


class Level(NamedTuple):
    """A query that is being read, and the one around it."""

    query: Node
    outer: Level | None


def lineage_of(cluster: Cluster, schema: str) -> dict[str, ViewLineage]:
    """The lineage of every view of a schema, by name. Views are objects: a view over a view depends on that view."""
    columns: dict[str, list[str]] = {}
    tables: dict[int, tuple[str, list[str]]] = {}
    for oid, name, number, column in cluster.run(
        "SELECT c.oid, c.relname, a.attnum, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        f" WHERE c.relnamespace = '{schema}'::regnamespace AND a.attnum > 0 ORDER BY 1, 3"
    ):
        known = tables.setdefault(int(oid), (name, []))[1]
        known.extend([""] * (int(number) - len(known) - 1))
        known.append(column)
    for name, column in cluster.run(
        f"SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = '{schema}'"
        " ORDER BY table_name, ordinal_position"
    ):
        columns.setdefault(name, []).append(column)
    found = {}
    for name, action in cluster.run(
        "SELECT c.relname, r.ev_action FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class"
        f" WHERE c.relnamespace = '{schema}'::regnamespace AND r.rulename = '_RETURN' ORDER BY 1"
    ):
        reader = Reader(tables)
        contributed = reader.outputs(Level(read(action)[0], None))
        found[name] = ViewLineage(columns[name], contributed, reader.referenced, _whole(reader))
    for name, table, column in cluster.run(
        "SELECT DISTINCT v.relname, t.relname, a.attname FROM pg_depend d"
        " JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass"
        " JOIN pg_class v ON v.oid = r.ev_class JOIN pg_class t ON t.oid = d.refobjid"
        " JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid"
        f" WHERE d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0 AND t.oid <> v.oid"
        f" AND v.relnamespace = '{schema}'::regnamespace ORDER BY 1, 2, 3"
    ):
        found[name].depends.add((table, column))
    return found


def _whole(reader: Reader) -> set[Column]:
    """What pg_depend says of a whole row: that the table is needed."""
    return {(table, column) for table, columns in reader.tables.values() if table in reader.whole for column in columns}


class Reader:
    """Reads the tree of one view."""

    def __init__(self, tables: dict[int, tuple[str, list[str]]]) -> None:
        self.tables = tables
        self.referenced: set[tuple[Column, str]] = set()
        self.whole: set[str] = set()
        """Tables of which a whole row is used."""
        self._done: dict[int, list[Deps]] = {}
        self._rows: dict[int, set[tuple[Column, str]]] = {}
        """What the queries of ``_done`` reference: whatever reads one of them does so, too."""
        self._working: dict[int, list[Deps]] = {}

    # ---- queries ---------------------------------------------------------------------------------

    def outputs(self, level: Level) -> list[Deps]:
        """The dependencies of a query's columns; what its clauses reference is recorded."""
        query = level.query
        known = self._done.get(id(query))
        if known is not None:
            self.referenced |= self._rows[id(query)]
            return known
        around, self.referenced = self.referenced, set()
        found = self._outputs(query, level)
        self._done[id(query)], self._rows[id(query)] = found, self.referenced
        self.referenced = around | self.referenced
        return found

    def _outputs(self, query: Node, level: Level) -> list[Deps]:
        targets = query.nodes("targetList")
        setop = query.get("setOperations")
        if isinstance(setop, Node):
            found = self._set_operation(setop, level)
            # Above the set operation there is no more than ORDER BY, on its columns.
            for clause in query.nodes("sortClause"):
                for number, target in enumerate(t for t in targets if t.get("resjunk") != "true"):
                    if target.number("ressortgroupref") == clause.number("tleSortGroupRef"):
                        self._refer(found[number], "sort")
        else:
            shown = [target["expr"] for target in targets if target.get("resjunk") != "true"]
            found = [as_column(self.expression(expression, level)) for expression in shown]
            self._clauses(level, targets)
        return found

    def _clauses(self, level: Level, targets: list[Node]) -> None:
        query = level.query
        tree = query.get("jointree")
        if isinstance(tree, Node):
            self._from(tree, level)
        if query.get("havingQual") is not None:
            self._refer(self.expression(query["havingQual"], level), "filter")
        by_ref = {target.number("ressortgroupref"): target for target in targets}
        clauses = [("groupClause", "group_by"), ("distinctClause", "distinct"), ("sortClause", "sort")]
        for name, kind in clauses:
            written = {clause.number("tleSortGroupRef") for clause in query.nodes(name)}
            for ref in written:
                deps = self.expression(by_ref[ref]["expr"], level)
                self._refer(deps if by_ref[ref].get("resjunk") == "true" else as_column(deps), kind)

    def _from(self, node: Node, level: Level) -> None:
        if node.kind == "FROMEXPR":
            for item in node.nodes("fromlist"):
                self._from(item, level)
            if node.get("quals") is not None:
                self._refer(self.expression(node["quals"], level), "filter")
        elif node.kind == "JOINEXPR":
            self._from(node["larg"], level)
            self._from(node["rarg"], level)
            if node.get("quals") is not None:
                self._refer(self.expression(node["quals"], level), "join")
        else:  # what a FROM item references decides rows, whether or not its columns are used
            self._entry(node.number("rtindex"), level)

    def _set_operation(self, node: Node, level: Level) -> list[Deps]:
        if node.kind == "RANGETBLREF":
            return self._entry(node.number("rtindex"), level)
        left = self._set_operation(node["larg"], level)
        right = self._set_operation(node["rarg"], level)
        union = node.number("op") == UNION
        if not union or node.get("all") != "true":
            for deps in (*left, *right):
                self._refer(deps, "distinct" if union else "set_operation")
        return [a | b for a, b in zip(left, right, strict=True)] if union else left

    def _refer(self, deps: Iterable[tuple[Column, str]], kind: str) -> None:
        self.referenced.update((column, kind) for column, own in deps if own != EXISTS)

    # ---- range table entries ---------------------------------------------------------------------

    def _entry(self, number: int, level: Level) -> list[Deps]:
        """The dependencies of all columns of a range table entry."""
        entry = level.query.nodes("rtable")[number - 1]
        kind = entry.number("rtekind")
        if kind == RELATION:
            name, columns = self.tables[entry.number("relid")]
            return [frozenset({((name, column), VALUE)}) for column in columns]
        if kind == SUBQUERY:
            return self.outputs(Level(entry["subquery"], level))
        if kind == CTE:
            return self._common_table(entry, level)
        if kind == JOIN:
            return [self.expression(item, level) for item in entry["joinaliasvars"]]
        if kind == VALUES:
            rows = [[self.expression(item, level) for item in row] for row in entry["values_lists"]]
            return [frozenset().union(*column) for column in zip(*rows, strict=True)]
        if kind == GROUP:
            return [self.expression(item, level) for item in entry["groupexprs"]]
        names = entry["eref"]["colnames"] or []
        if kind == FUNCTION:
            outputs: list[Deps] = []
            for function in entry.nodes("functions"):
                deps = self.expression(function["funcexpr"], level)
                outputs.extend([deps] * function.number("funccolcount"))
            return outputs + [frozenset()] * (len(names) - len(outputs))  # WITH ORDINALITY
        if kind == TABLEFUNC:
            return [self._rows_made(entry["tablefunc"], level)] * len(names)
        return [frozenset()] * len(names)

    def _common_table(self, entry: Node, level: Level) -> list[Deps]:
        at: Level | None = level
        for _ in range(entry.number("ctelevelsup")):
            assert at is not None
            at = at.outer
        assert at is not None
        common = next(item for item in at.query.nodes("cteList") if item["ctename"] == entry["ctename"])
        query = common["ctequery"]
        working = self._working.get(id(query))
        if working is not None:
            return working
        if common.get("cterecursive") != "true":
            return self.outputs(Level(query, at))
        known = self._done.get(id(query))
        if known is not None:
            self.referenced |= self._rows[id(query)]
            return known
        # A recursive CTE: what it puts out is read again by its own arms, until nothing is new.
        width = len([t for t in query.nodes("targetList") if t.get("resjunk") != "true"])
        found: list[Deps] = [frozenset()] * width
        for _ in range(MAX_ROUNDS):
            self._working[id(query)] = found
            kept = dict(self._done)
            more = self.outputs(Level(query, at))
            self._done = kept
            if more == found:
                break
            found = more
        del self._working[id(query)]
        self._done[id(query)] = found
        return found

    # ---- expressions -----------------------------------------------------------------------------

    def expression(self, node: object, level: Level) -> Deps:
        """The dependencies of an expression, or of a list of them."""
        if isinstance(node, list):
            return frozenset().union(*(self.expression(item, level) for item in node))
        if not isinstance(node, Node):
            return frozenset()
        if node.kind == "VAR":
            return self._var(node, level)
        if node.kind in ("CASEEXPR", "CASE"):
            return self._case(node, level)
        if node.kind == "SUBLINK":
            if node.number("subLinkType") == EXISTS_SUBLINK:
                return self._exists(Level(node["subselect"], level))
            found = self.outputs(Level(node["subselect"], level))
            return frozenset().union(self.expression(node.get("testexpr"), level), *found)
        if node.kind == "AGGREF":
            return self._aggregate(node, level)
        if node.kind == "FUNCEXPR" and node.get("funcretset") == "true":
            return self._rows_made(node.get("args"), level)
        if node.kind == "WINDOWFUNC":
            window = _as(self._window(node.number("winref"), level), WINDOW)
            condition = _as(self.expression(node.get("aggfilter"), level), CONDITIONAL)
            return self.expression(node.get("args"), level) | window | condition
        return frozenset().union(*(self.expression(value, level) for value in node.values()))

    def _rows_made(self, node: object, level: Level) -> Deps:
        """The dependencies of values that are made into rows: how many there are depends on them."""
        deps = self.expression(node, level)
        listed = [one.kind for one in node if isinstance(one, Node)] if isinstance(node, list) else []
        if set(listed) != {"ARRAY"} and set(listed) != {"ARRAYEXPR"}:  # an array that lists its elements has no others
            self._refer(deps, "filter")
        return deps

    def _exists(self, level: Level) -> Deps:
        """What the rows of a query depend on."""
        known, self.referenced = self.referenced, set()
        self.outputs(level)
        rows = self.referenced
        self.referenced = known | rows
        return frozenset((column, EXISTS) for column, _ in rows)

    def _var(self, node: Node, level: Level) -> Deps:
        at: Level | None = level
        for _ in range(node.number("varlevelsup")):
            assert at is not None
            at = at.outer
        assert at is not None
        known = set(self.referenced)
        entry = self._entry(node.number("varno"), at)
        if at is not level:  # the query around counts what it reads itself
            self.referenced = known
        number = node.number("varattno")
        if not number:
            written = at.query.nodes("rtable")[node.number("varno") - 1]
            if written.number("rtekind") == RELATION:
                self.whole.add(self.tables[written.number("relid")][0])
        if number < 0:  # ctid and its like
            return frozenset()
        return entry[number - 1] if number else frozenset().union(*entry)  # 0 is the whole row

    def _case(self, node: Node, level: Level) -> Deps:
        steering = self.expression(node.get("arg"), level)
        values = self.expression(node.get("defresult"), level)
        for branch in node.nodes("args"):
            steering |= self.expression(branch.get("expr"), level)
            values |= self.expression(branch.get("result"), level)
        return values | _as(steering, CONDITIONAL)

    def _aggregate(self, node: Node, level: Level) -> Deps:
        """Arguments are values; ORDER BY within, where it is not itself the argument, steers as a window's does."""
        values = self.expression(node.get("aggdirectargs"), level)
        order: Deps = frozenset()
        ordered_set = node.get("aggkind") in ("o", "h")
        for target in node.nodes("args"):
            deps = self.expression(target["expr"], level)
            if target.get("resjunk") == "true":
                order |= deps
            else:
                values |= deps
                if not ordered_set and any(
                    clause.number("tleSortGroupRef") == target.number("ressortgroupref")
                    for clause in node.nodes("aggorder")
                ):
                    order |= deps
        return values | _as(order, WINDOW) | _as(self.expression(node.get("aggfilter"), level), CONDITIONAL)

    def _window(self, number: int, level: Level) -> Deps:
        clause = level.query.nodes("windowClause")[number - 1]
        targets = {t.number("ressortgroupref"): t["expr"] for t in level.query.nodes("targetList")}
        found = [self.expression(clause.get(key), level) for key in ("startOffset", "endOffset")]
        for key in ("partitionClause", "orderClause"):
            found.extend(self.expression(targets[c.number("tleSortGroupRef")], level) for c in clause.nodes(key))
        return frozenset().union(*found)


def _as(deps: Deps, kind: str) -> Deps:
    """What steers once is never a value again: seen through a condition or a window, everything is that."""
    return frozenset((column, EXISTS if own == EXISTS else kind) for column, own in deps)


def as_column(deps: Deps) -> Deps:
    """The dependencies of an expression as those of the column that it is."""
    return frozenset((column, CONDITIONAL if own == EXISTS else own) for column, own in deps)
