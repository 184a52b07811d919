"""The corpora that PostgreSQL judges: TPC-DS and TPC-H as views."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp

from bench.corpora import ROOT, Corpus, tpc_ds, tpc_h
from bench.oracles.compare import View
from bench.oracles.expressions import INT, TABLES, TEXT
from bench.oracles.queries import Generator

_TYPES = {"bigint": "bigint", "int": "integer", "double": "numeric", "string": "text"}


def tpc_views() -> dict[str, tuple[dict[str, dict[str, str]], list[View]]]:
    """Tables and views by corpus."""
    return {corpus.name: (_tables(corpus), _views(corpus)) for corpus in (tpc_ds(), tpc_h())}


def _tables(corpus: Corpus) -> dict[str, dict[str, str]]:
    """The schema with PostgreSQL's types: sqlglot's has text for dates, and doubles, which do not round."""
    return {
        table: {
            column: "date" if column.endswith(("_date", "date")) else _TYPES[type_] for column, type_ in columns.items()
        }
        for table, columns in corpus.schema.items()
    }


def _views(corpus: Corpus) -> list[View]:
    prefix = corpus.name.replace("-", "").lower()
    return [
        View(f"{prefix}_{number}", _for_postgres(sqlglot.parse_one(text, read="postgres")).sql("postgres"))
        for number, text in enumerate(corpus.texts, 1)
    ]


def _for_postgres(tree: exp.Expr) -> exp.Expr:
    """What PostgreSQL before 16 asks for and these texts leave out, and nothing else."""
    for number, subquery in enumerate(list(tree.find_all(exp.Subquery))):
        if isinstance(subquery.parent, (exp.From, exp.Join)) and not subquery.alias:
            subquery.set("alias", exp.TableAlias(this=exp.to_identifier(f"unnamed_{number}")))
    for select in list(tree.find_all(exp.Select)):
        named = {item.alias: item.this for item in select.expressions if isinstance(item, exp.Alias)}
        for ordered in select.args["order"].expressions if select.args.get("order") else ():
            if isinstance(ordered.this, exp.Column):
                continue
            # An expression of ORDER BY may name no output column.
            for column in list(ordered.find_all(exp.Column)):
                if not column.table and column.name in named:
                    column.replace(exp.paren(named[column.name].copy()))
    return tree


def tpc_queries() -> dict[str, tuple[dict[str, dict[str, str]], list[View]]]:
    """Tables and queries for Spark by corpus."""
    found = {}
    for corpus in (tpc_ds(), tpc_h()):
        tables = {
            table: {column: "date" if column.endswith("date") else type_ for column, type_ in columns.items()}
            for table, columns in corpus.schema.items()
        }
        queries = [
            View(f"query_{number}", sqlglot.parse_one(text, read="postgres").sql("spark"))
            for number, text in enumerate(corpus.texts, 1)
        ]
        found[corpus.name] = tables, queries
    return found


ONE_WIDTH = """
CREATE FUNCTION length(text) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT pg_catalog.length($1)::bigint';

CREATE AGGREGATE sum(bigint) (SFUNC = int8pl, STYPE = bigint);
"""
"""Makes every integer of a generated query a bigint. Between columns of different types USING yields the column of the
wider one, which is no matter of lineage: their values are equal."""


def generated_views(seeds: range) -> tuple[dict[str, dict[str, str]], list[View]]:
    """Generated tables and views."""
    types = {INT: "bigint", TEXT: "text"}
    tables = {table: {name: types[kind] for name, kind in columns.items()} for table, columns in TABLES.items()}
    return tables, [View(f"seed_{seed}", Generator(seed, "postgres").draw()) for seed in seeds]


_FIXTURES = ROOT / "fixtures" / "oracles"
_DECLARED = re.compile(r'-- (table|type|view) ("[^"]+"|\w+): (.*)')
_COLUMN = re.compile(r'("[^"]+"|\w+) (.*)')


def written_views() -> tuple[dict[str, dict[str, str]], list[View], str]:
    """The statements of ``fixtures/oracles/postgres.sql``: tables, views, and the types that go before."""
    tables: dict[str, dict[str, str]] = {}
    views: list[View] = []
    types: list[str] = []
    for line in (_FIXTURES / "postgres.sql").read_text().splitlines():
        declared = _DECLARED.match(line)
        if declared is None:
            if not line.startswith("--"):
                views.append(View(f"line_{len(views)}", line))
        elif declared[1] == "view":
            views.append(View(declared[2], declared[3]))
        elif declared[1] == "type":
            types.append(f"CREATE TYPE {declared[2]} AS ({declared[3]});")
        else:
            columns = [_COLUMN.fullmatch(column) for column in declared[3].split(", ")]
            tables[declared[2]] = {column[1]: column[2] for column in columns if column}
    return tables, views, "".join(types)


def written_queries() -> list[str]:
    """The queries of ``fixtures/oracles/duckdb.sql``."""
    lines = (_FIXTURES / "duckdb.sql").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("--")]


def written_spark() -> tuple[dict[str, dict[str, str]], list[View]]:
    """The tables and statements of ``fixtures/oracles/spark.sql``."""
    tables: dict[str, dict[str, str]] = {}
    queries: list[View] = []
    for line in (_FIXTURES / "spark.sql").read_text().splitlines():
        declared = _DECLARED.match(line)
        if declared is not None:
            columns = [_COLUMN.fullmatch(column) for column in declared[3].split("; ")]
            tables[declared[2]] = {column[1]: column[2] for column in columns if column}
        elif line and not line.startswith("--"):
            queries.append(View(f"line_{len(queries)}", line))
    return tables, queries


EXPLAINED_SPARK = {
    "select c:k.l as v1 from (select parse_json(c) as c from t)": "sqlglot reads this operator for Databricks only",
    "from (select a, c from t) map a, c using 'cat' as x, y": "sqlglot does not read Hive's MAP … USING",
    "from v |> set a = a + b |> drop h": "sqlglot does not read the pipe operators SET and DROP",
}
"""Statements that may differ from Spark's analyzer, and why: each is reported as not understood."""

EXPLAINED = {
    "select (addr).* from p": "a composite type has its fields in CREATE TYPE, which is not read: `?` stands for them",
    "select id from t limit (select max(id) from u)": "trees are compared without LIMIT, whose query decides on rows",
    "select now() from t": "sqlglot reads now() as CURRENT_TIMESTAMP, whose column PostgreSQL calls current_timestamp",
}
"""Statements that may differ from PostgreSQL in names, and why."""

EXPLAINED_GENERATED = {
    "seed_3685": "a NATURAL JOIN of several columns, in a CTE that nothing reads, goes on without one of them",
}
"""Generated views that may differ from PostgreSQL in names, by name, and why."""
